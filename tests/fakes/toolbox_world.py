"""A toolbox over the real tools in a temporary workspace: calls are prepared and run as the graph does it."""

from pathlib import Path
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.errors import StaleOwner
from graph_agent.ports import Outcome, PreparedCall, Scope
from graph_agent.toolbox import GraphToolbox, ToolboxDependencies
from graph_agent.toolbox.early_reads import EarlyReadToolbox
from graph_agent.toolbox.tool_context import ProgressReport
from policy import PolicySettings, parse_rules
from tests.fakes.tool_ports import ToolEnvironment
from tools import create_default_tools
from tools.base import BaseTool
from tools.registry import Origin, ToolRegistry

__all__ = ["World", "call_of"]


class World:
    """A toolbox over real tools in a temporary workspace."""

    def __init__(
        self,
        folder: Path,
        *more: BaseTool,
        stale: bool = False,
        early: bool = False,
        origin: Origin = "builtin",
        **rules: list[str],
    ) -> None:
        self.around = ToolEnvironment(folder)
        self.workspace = self.around.workspace
        self.progress: list[tuple[str, str, str]] = []
        self.processes: list[tuple[str, str, int]] = []
        self._stale = stale
        registry = ToolRegistry()
        registry.register_all(create_default_tools(workspace=self.workspace))
        registry.register_all(more, origin=origin)
        self.registry = registry
        settings = PolicySettings(rules=parse_rules(**rules), reserved=(folder.resolve() / "agent",))
        ports = ToolboxDependencies(self.around.blobs, self.around.file_states, self._record, self._report)
        kind = EarlyReadToolbox if early else GraphToolbox
        self.box: GraphToolbox = kind(registry, workspace=self.workspace, policy=settings, dependencies=ports)

    async def plan(self, tool: str, mode: str = "default", **arguments: Any) -> PreparedCall:
        """Prepare a call."""
        return await self.box.prepare(tool, arguments, Scope("t1", mode))

    async def run(
        self, tool: str, *, cwd: str = "", preview: dict[str, Any] | None = None, **arguments: Any
    ) -> Outcome:
        """Run a call that was not prepared."""
        call = call_of(tool, arguments)
        if preview is not None:
            call["preview"] = preview
        return await self.box.run(call, Scope("t1", "default", cwd))

    async def go_through(self, tool: str, mode: str = "default", **arguments: Any) -> tuple[PreparedCall, Outcome]:
        """Prepare a call and run it at once, also if it needs approval."""
        plan = await self.plan(tool, mode, **arguments)
        return plan, await self.run_as(plan)

    async def run_as(self, plan: PreparedCall) -> Outcome:
        """Run a prepared call."""
        call = call_of(plan.tool_name, plan.arguments)
        call["paths"] = list(plan.paths)
        if plan.preview is not None:
            call["preview"] = plan.preview
        return await self.box.run(call, Scope("t1", "default"))

    async def _record(self, thread_id: str, call_id: str, attempt: int, group: int, started: str) -> None:
        if self._stale:
            raise StaleOwner(f"{call_id} belongs to another run since {started}, group {group}")
        self.processes.append((thread_id, call_id, attempt))

    def _report(self, call_id: str, report: ProgressReport) -> None:
        self.progress.append((call_id, report.kind, report.text))


def call_of(tool: str, arguments: dict[str, Any]) -> ToolCallInfo:
    """A call that is executed for the second time."""
    return {
        "call_id": "c1",
        "tool_name": tool,
        "arguments": arguments,
        "status": "executing",
        "result": None,
        "error_msg": None,
        "attempt": 2,
    }
