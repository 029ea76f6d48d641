"""What tools need of the world, in memory: blobs, file states, a process ledger, and a context made of them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.errors import StorageError
from tools.agent_ops.new_task import SubAgentTask
from tools.base import Limits, MemoryFileStates, Progress, ShellOutput, ToolContext, ToolResult

if TYPE_CHECKING:
    from tools.sandbox import Sandbox

__all__ = ["ImmediateSubAgents", "MemoryBlobs", "MemoryProcesses", "ToolEnvironment"]


class MemoryBlobs:
    """Blobs in a dict; output files are real. A missing blob raises what the store raises and tools expect."""

    class Absent(StorageError, LookupError):
        """No such blob."""

    def __init__(self, spools: Path) -> None:
        self.stored: dict[str, bytes] = {}
        self._spools = spools

    def put(self, data: bytes) -> str:
        """Keep."""
        reference = f"blob:sha256:{hashlib.sha256(data).hexdigest()}"
        self.stored[reference] = data
        return reference

    def get(self, reference: str) -> bytes:
        """Give back."""
        if reference not in self.stored:
            raise MemoryBlobs.Absent(f"no blob {reference!r}")
        return self.stored[reference]

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """A path in the folder of spools."""
        self._spools.mkdir(exist_ok=True)
        return self._spools / f"{thread_id}-{call_id}-{attempt}"


class MemoryProcesses:
    """Remembers what was recorded, and what the command had done until then."""

    def __init__(self, witness: Path | None = None) -> None:
        self.recorded: list[tuple[str, int, int, str]] = []
        self.had_run: list[bool] = []
        self._witness = witness

    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        """Remember."""
        self.recorded.append((context.call_id, context.attempt, group, start_time))
        self.had_run.append(self._witness is not None and self._witness.exists())


class ImmediateSubAgents:
    """Sub-agents that have done everything the moment they are asked."""

    def __init__(self, *known: str) -> None:
        self.known = known
        self.tasks: list[SubAgentTask] = []

    def available_tools(self) -> Sequence[str]:
        """The names it was made with."""
        return self.known

    async def run_task(self, task: SubAgentTask, context: ToolContext) -> ToolResult:
        """Done."""
        self.tasks.append(task)
        return ToolResult(f"did {task.prompt} for {context.call_id}", "done")


class ToolEnvironment:
    """A workspace in a temporary folder with everything a context holds."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "ws"
        self.workspace.mkdir()
        self.workspace = self.workspace.resolve()
        self.blobs = MemoryBlobs(folder / "spools")
        self.file_states = MemoryFileStates()
        self.processes = MemoryProcesses(self.workspace / "witness")
        self.output: list[str] = []
        self.sandbox: Sandbox | None = None

    def context(self, **changes: Any) -> ToolContext:
        """A context over the same ports."""
        values: dict[str, Any] = {
            "workspace": self.workspace,
            "has_policy": True,
            "thread_id": "t1",
            "call_id": "c1",
            "file_states": self.file_states,
            "blobs": self.blobs,
            "processes": self.processes,
            "sandbox": self.sandbox,
            "limits": Limits(),
            "progress": self._show,
        }
        return ToolContext(**(values | changes))

    def _show(self, progress: Progress) -> None:
        if isinstance(progress, ShellOutput):
            self.output.append(progress.text)
