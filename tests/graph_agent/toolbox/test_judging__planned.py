from pathlib import PurePath

from graph_agent.ports import Plan
from graph_agent.toolbox.judging import planned
from policy import CallFacts, Decision, PathFact
from tools.file_ops.ls import LsTool


def test_a_plan_tells_the_decision_and_where_the_paths_lead() -> None:
    path = PathFact("link", PurePath("/ws/real"), "read", inside=True)
    facts = CallFacts("ls", "default", "low", "readonly", PurePath("/ws"), paths=(path,))

    plan = planned(LsTool(), {"path": "link"}, facts, Decision("ask", "ask ls", "The rule asks."), None)

    assert plan == Plan(
        "ls",
        {"path": "link"},
        "ask",
        "The rule asks.",
        "ask ls",
        risk="low",
        kind="readonly",
        concurrency_safe=True,
        summary=LsTool().display_call({"path": "link"}),
        paths=("/ws/real",),
    )
