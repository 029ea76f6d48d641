"""Background shells that run now, as database and process table tell it. Ends none of them."""

from dataclasses import dataclass

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.ports.processes import boot_id, process_started

__all__ = ["RunningShell", "read_shells"]

_THERE = "SELECT count(*) FROM sqlite_schema WHERE name = 'shells'"
_OPEN = """
SELECT id, shells.thread_id, command, shells.started_at, process_group, process_started, boot_id
FROM shells JOIN journal USING (thread_id, call_id, attempt) WHERE shells.ended_at IS NULL ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class RunningShell:
    """One of them."""

    shell_id: str
    thread_id: str
    command: str
    started_at: str
    pid: int
    """Of its first process, which leads its group."""


def read_shells(database: ReadOnlyDatabase, thread_id: str | None = None) -> tuple[RunningShell, ...]:
    """Those of a thread, or all; none in a file from before there were any."""
    if database.rows(_THERE) == [(0,)]:
        return ()
    return tuple(
        RunningShell(f"sh{number}", thread, command, started_at, group)
        for number, thread, command, started_at, group, group_started, boot in database.rows(_OPEN)
        if thread_id in (None, thread)
        and group is not None
        and boot == boot_id()
        and process_started(group) == group_started
    )
