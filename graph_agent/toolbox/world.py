"""What the toolbox needs of the world around it, as ports. Knows none of their implementations."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from graph_agent.config.scrub import Scrub
from graph_agent.ports import Blobs, FileStates, Grants
from graph_agent.toolbox.adapters import RecordProcess, Told
from graph_agent.toolbox.granting import NoGrants
from tools.sandbox import Sandbox

__all__ = ["ToolboxPorts"]


def _silent(call_id: str, told: Told) -> None: ...


async def _at_once() -> None: ...


@dataclass(frozen=True)
class ToolboxPorts:
    """What the toolbox needs of the world."""

    blobs: Blobs
    file_states: FileStates
    record_process: RecordProcess
    on_progress: Callable[[str, Told], None] = _silent
    """Call id, and what is told of its progress."""
    grants: Grants = field(default_factory=NoGrants)
    scrub: Scrub = field(default_factory=Scrub)
    """Hides what must not be kept."""
    sandbox: Sandbox | None = None
    servers_settled: Callable[[], Awaitable[None]] = _at_once
    """Waits until every server has its tools, or never will; a call may come before its server is there."""
    why_missing: Callable[[str], str] = lambda _: ""
    """Why there is no tool of a name; empty where nothing is known of one."""
