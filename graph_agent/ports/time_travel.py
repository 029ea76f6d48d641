"""Values and protocols for rewinding a thread with the files its calls changed, and the changes to each file."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

if TYPE_CHECKING:
    from graph_agent.ports.toolbox import Intent

__all__ = [
    "ExecutedAttempt",
    "FileImage",
    "FileRestoration",
    "Rewind",
    "RewindScope",
    "Rewinds",
    "SubAgentRewind",
    "WorkspaceFiles",
    "changes_by_path",
    "find_foreign_change",
]

RewindScope = Literal["both", "files", "chat"]


@dataclass(frozen=True, slots=True)
class ExecutedAttempt:
    """One attempt of a call that may have had an effect, as the journal has it."""

    call_id: str
    attempt: int
    status: str
    intent: "Intent | None"
    started_at: str
    tool_name: str = ""
    kind: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    changes_todo_only: bool = False
    """It changed only the thread's own plan, which is rewound with the conversation."""
    changed_files: tuple[str, ...] | None = None
    """Of a command: the files of the work tree that changed while it ran, relative to the workspace; None where
    that was not observed."""
    changed_files_more: int = 0
    """How many changed besides those named."""

    @classmethod
    def from_record(cls, attempt: Sequence[Any], intent: "Intent | None", record: Mapping[str, Any]) -> Self:
        """From the journal's call id, attempt, status and start, and the record in the call log."""
        call_id, number, status, started_at = attempt
        metadata = record.get("metadata") or {}
        changed = metadata if record.get("attempt", 1) == number else {}
        names = changed.get("changed_files")
        return cls(
            call_id,
            number,
            status,
            intent,
            started_at,
            str(record.get("tool_name") or ""),
            str(record.get("kind") or ""),
            record.get("arguments") or {},
            "todo" in metadata,
            None if names is None else tuple(names),
            changed.get("changed_files_more", 0),
        )


@dataclass(frozen=True, slots=True)
class FileImage:
    """A file at one time; no digest means that there was none."""

    sha256: str | None = None
    blob: str | None = None
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class FileRestoration:
    """One file of a rewind: as it was when the rewind began, and as it is to become."""

    path: str
    current: FileImage
    target: FileImage
    new_folder: str | None = None
    """Where the file is removed: the outermost folder that was created for it."""


@dataclass(frozen=True, slots=True)
class SubAgentRewind:
    """The thread of a sub-agent that is rewound with its parent."""

    thread_id: str
    checkpoint_id: str
    """Where its conversation is rewound to; empty where it stays."""
    head: str
    """Where it was."""
    calls: tuple[tuple[str, int], ...] = ()
    """See `Rewind.calls`."""


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind as it is recorded before anything is touched."""

    thread_id: str
    checkpoint_id: str
    """Where the conversation is rewound to."""
    head: str
    """Where it was."""
    scope: RewindScope
    files: tuple[FileRestoration, ...] = ()
    calls: tuple[tuple[str, int], ...] = ()
    """Call and attempt of what is reverted; of an undo: of what counts again."""
    reverts: int | None = None
    """Number of the rewind that this one undoes."""
    sub_agents: tuple[SubAgentRewind, ...] = ()
    """Parents first."""
    number: int = field(default=0, compare=False)
    """Its own number; 0 before it is recorded."""


class Rewinds(Protocol):
    """The journal of rewinds. What a method says is durable when it returns."""

    async def attempts_since(self, thread_id: str, at: str) -> Sequence[ExecutedAttempt]:
        """Attempts that may have begun at or after a time and are not reverted, oldest first.

        Those from an imported file have no intent: no file is restored from what a file says.
        """

    async def sub_agents(self, thread_id: str) -> Sequence[tuple[str, str]]:
        """Thread and call of each sub-agent that ever worked for a thread."""

    async def plan(self, rewind: Rewind) -> Rewind:
        """Record what is about to be done; returns it with its number.

        Raises:
            UsageError: the checkpoint of a sub-agent has been pruned since the rewind was planned.
        """

    async def finish(self, rewind: Rewind) -> None:
        """Files and conversation are restored: mark the calls as reverted, or valid again, in one transaction."""

    async def unfinished(self, thread_id: str) -> Rewind | None:
        """The rewind that was recorded and interrupted."""

    async def last(self, thread_id: str) -> Rewind | None:
        """The newest finished rewind that was not undone, of those that were made here."""

    async def has_imported(self, thread_id: str) -> bool:
        """Whether the thread has rewinds from an imported file, which are never undone."""


class WorkspaceFiles(Protocol):
    """Files of the workspace, for restoring them. Refusals are sentences, not exceptions."""

    async def image(self, path: str) -> FileImage | str:
        """The file as it is now, its content kept as a blob; or why it cannot be touched."""

    async def restore_file(self, restoration: FileRestoration) -> str:
        """Restore the file, unless it has changed since the rewind began; returns why not, or nothing."""


def changes_by_path(done: Iterable[ExecutedAttempt]) -> dict[str, list[ExecutedAttempt]]:
    """The changes to each file, oldest first. A write that ended in an error changed nothing."""
    changes: dict[str, list[ExecutedAttempt]] = {}
    for one in done:
        if one.intent is not None and one.status != "error":
            changes.setdefault(one.intent.path, []).append(one)
    return changes


def find_foreign_change(
    now: str | None, changes: Sequence[ExecutedAttempt], done: Iterable[ExecutedAttempt] = ()
) -> str:
    """Who else changed a file, in words; empty if it is what these changes left.

    Args:
        now: digest of the file; None if it does not exist.
        changes: the thread's changes to this file, oldest first.
        done: everything the thread did: one of its commands may have been seen to change the file.
    """
    who = "a command of this thread" if any(_has_changed(one, changes[0]) for one in done) else "somebody else"
    possible: set[str | None] = set()
    for position, one in enumerate(changes):
        intent = one.intent
        if intent is None:
            continue
        if position and intent.before_sha256 not in possible:
            return f"{who} changed it between two changes of this thread"
        is_sure = one.status == "success"
        possible = {intent.after_sha256} if is_sure else {*possible, intent.before_sha256, intent.after_sha256}
    if now in possible:
        return ""
    return f"it was removed by {who}" if now is None else f"it was changed by {who} since"


def _has_changed(command: ExecutedAttempt, change: ExecutedAttempt) -> bool:
    path = change.intent.path if change.intent else ""
    return any(path.endswith(f"/{name}") for name in command.changed_files or ())
