"""A judged call as the graph is told of it."""

from typing import Any

from graph_agent.ports import Plan
from policy import CallFacts, Decision
from tools.base import BaseTool

__all__ = ["planned"]


def planned(
    tool: BaseTool,
    arguments: dict[str, Any],
    facts: CallFacts,
    decision: Decision,
    shown: dict[str, Any] | None,
) -> Plan:
    """The plan of a call; `shown` is what a person is to see of its effect."""
    return Plan(
        tool_name=tool.name,
        arguments=arguments,
        verdict=decision.verdict,
        reason=decision.reason,
        rule=decision.rule,
        risk=facts.risk,
        kind=facts.kind,
        concurrency_safe=tool.is_concurrency_safe(arguments),
        wants_answer=tool.wants_answer,
        goes_on=tool.goes_on,
        display=tool.display_call(arguments),
        paths=tuple(str(path.resolved) for path in facts.paths),
        preview=shown,
    )
