from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graph_agent.cli.demo.script import DemoNarrator, run_steps
from graph_agent.cli.demo.workspace import DemoCommands, DemoFailed, DemoWorkspace

CALL = "call_0123456789abcdef"
AFTER_FIRST, KILLED, DECIDED = "1f-first-00000001", "1f-killed-00000002", "1f-decided-00000003"


@dataclass
class Recorded(DemoCommands):
    """Notes the commands instead of running them; answers as a thread would that was killed once."""

    processes: tuple[int, ...] = ()
    ran: list[str] = field(default_factory=list)
    nodes: tuple[tuple[str, str], ...] = (
        ("1f-end-4", "reasoning"),
        (DECIDED, "human_approval"),
        (KILLED, "x"),
    )

    def run(self, *arguments: str, exit_code: int = 0) -> None:
        self.ran.append(" ".join(arguments))

    def show(self, file: str) -> None:
        self.ran.append(f"cat {file}")

    def run_and_kill(self, *arguments: str, **_: Any) -> None:
        self.ran.append(f"KILL {' '.join(arguments)}")

    def read(self, *arguments: str) -> Any:
        was_killed = any(line.startswith("KILL") for line in self.ran)
        return {
            "inspect": {"checkpoint_id": KILLED if was_killed else AFTER_FIRST},
            "approvals": {"approvals": [{"call_id": CALL}]},
            "recover": {"calls": [{"call_id": CALL, "processes": list(self.processes)}]},
            "history": {"checkpoints": [{"checkpoint_id": one, "node": node} for one, node in self.nodes]},
        }[arguments[0]]


class Answers(DemoNarrator):
    def __init__(self, *keys: str) -> None:
        super().__init__(is_asking=False)
        self._keys = list(keys)
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def choose(self, *_: Any) -> str:
        return self._keys.pop(0)


def told(keys: str, **situation: Any) -> tuple[list[str], list[str]]:
    children, guide = Recorded(**situation), Answers(*keys)
    run_steps(DemoWorkspace(Path("nowhere")), children, guide)
    return children.ran, guide.said


def test_the_whole_story_in_the_order_of_its_commands() -> None:
    ran, _ = told("yd")

    assert ran == [
        "run --thread demo read order.txt",
        "run --resume demo --mode acceptEdits replace open by paid in order.txt, then run sh charge.sh",
        "approvals list",
        "approvals approve 89abcdef",
        "KILL run --resume demo",
        "cat charges.txt",
        "calls demo",
        "inspect demo",
        "recover demo",
        "recover demo --done 89abcdef --result order 17 is charged: its line is in charges.txt",
        "run --resume demo",
        "cat charges.txt",
        "calls demo",
        "history demo --last 8",
        "diff 00000002 00000003",
        "threads diff demo",
        "rewind 00000001 --yes",
        "cat order.txt",
    ]


@pytest.mark.parametrize(
    ("key", "decision", "remark"),
    [("r", "--retry 89abcdef", "Two lines: it ran twice"), ("c", "--cancel 89abcdef", "One line: charged once")],
)
def test_another_decision_is_carried_out_and_told(key: str, decision: str, remark: str) -> None:
    ran, said = told(f"y{key}")

    assert f"recover demo {decision}" in ran
    assert any(line.startswith(remark) for line in said)


def test_what_still_runs_is_ended_with_the_decision() -> None:
    ran, _ = told("yr", processes=(7,))

    assert "recover demo --retry 89abcdef --end-processes" in ran


def test_who_says_no_sees_the_refusal_and_no_kill() -> None:
    ran, _ = told("n")

    assert ran[3:] == [
        "approvals reject 89abcdef --reason not today",
        "run --resume demo",
        "calls demo",
        "threads diff demo",
        "rewind 00000001 --yes",
        "cat order.txt",
    ]


def test_a_history_without_the_decision_is_an_error() -> None:
    with pytest.raises(DemoFailed, match="no checkpoint with the decision"):
        told("yd", nodes=((KILLED, "x"),))
