"""A tool of others as it answered about one call: it is asked once, and judged by what it said."""

from collections.abc import Mapping
from typing import Any

from tools.base import BaseTool, Target
from tools.running import parsed

__all__ = ["Foretold"]


class Foretold(BaseTool):
    """What a tool says of these arguments, whatever arguments its methods are given then."""

    def __init__(self, tool: BaseTool, arguments: Mapping[str, Any]) -> None:
        """Ask all of it, which runs the tool's own code.

        Raises:
            BadArguments: they are unusable.
        """
        super().__init__(workspace=tool.workspace)
        self.name, self.display_name = tool.name, tool.display_name
        self.kind, self.in_plan_mode = tool.kind, tool.in_plan_mode
        self.risk_level, self.risk_is_configured = tool.risk_level, tool.risk_is_configured
        self.original_name, self.rule_name = tool.original_name, tool.rule_name
        self.wants_answer, self.goes_on = tool.wants_answer, tool.goes_on
        self.arguments = parsed(tool, arguments)
        self._objection = tool.validate(self.arguments)
        if self._objection is None or self._objection == "":
            self._only_reads = bool(tool.is_read_only(self.arguments))
            self._may_run_beside = bool(tool.is_concurrency_safe(self.arguments))
            self._targets = _required(tool.targets(self.arguments))
            self._signature = str(tool.signature(self.arguments))
            self._rule = str(tool.suggest_rule(self.arguments))
            self._display = str(tool.display_call(self.arguments))

    def validate(self, args: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - it was asked about these
        """Its objection; where it has one, it was asked nothing else."""
        return None if self._objection is None else str(self._objection)

    def is_read_only(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._only_reads

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._may_run_beside

    def targets(self, args: Mapping[str, Any]) -> list[Target]:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._targets

    def signature(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._signature

    def suggest_rule(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._rule

    def display_call(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._display


def _required(targets: list[Target]) -> list[Target]:
    """The targets, if they are some: what is none would be passed over, and not judged."""
    for target in targets:
        if not isinstance(target, Target):
            raise TypeError(f"targets cannot hold {type(target).__name__}")
    return list(targets)
