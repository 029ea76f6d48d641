"""What the graph needs of the journal: the durable account of which calls began and how they ended."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from graph_agent.ports.toolbox import Intent, Outcome

__all__ = ["Claim", "Journal", "JournalRow", "RowStatus"]

RowStatus = Literal["executing", "success", "error", "interrupted", "not_started"]
"""executing: claimed, no outcome (yet). interrupted: stopped while running. not_started: stopped after the claim,
before the tool was entered. success and error are the finished ones."""


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One attempt of one call."""

    call_id: str
    attempt: int
    owner: str
    """Life token of the claiming life."""
    status: RowStatus
    started_at: str
    ended_at: str | None = None
    outcome: Outcome | None = None
    """Set when finished."""
    intent: Intent | None = None
    process_group: int | None = None
    process_started: str | None = None
    """Start time of the group's leader as the kernel tells it; with the boot id it makes the pid unique."""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether the outcome is recorded: such a call is never run again."""
        return self.status in ("success", "error")

    @property
    def may_have_begun(self) -> bool:
        """Whether the tool may have been entered."""
        return self.status != "not_started"


@dataclass(frozen=True, slots=True)
class Claim:
    """Answer to a claim: won, or the finished row that makes running needless, or lost to another attempt."""

    won: bool
    finished: JournalRow | None = None


class Journal(Protocol):
    """Rows are keyed by thread, call and attempt, never deleted, and durable before the method returns."""

    async def rows(self, thread_id: str, call_id: str) -> list[JournalRow]:
        """All attempts of a call, oldest first; attempts undone by a rewind are left out."""
        ...

    async def undone(self, thread_id: str, call_ids: list[str]) -> list[JournalRow]:
        """The attempts at these calls that a rewind undid, oldest first of each: their numbers do not come back."""
        ...

    async def known_ids(self, thread_id: str, call_ids: list[str]) -> set[str]:
        """Which of these ids any call of the thread already has, on any branch."""
        ...

    async def written_files(self, thread_id: str) -> list[str]:
        """The files that calls of the thread wrote or may have written, in the order of the first time."""
        ...

    async def claim(self, thread_id: str, call_id: str, attempt: int, owner: str, intent: Intent | None) -> Claim:
        """Write "executing" for this attempt, in one transaction.

        Refused when a finished row of any attempt exists (it is returned) or a row of this or a higher attempt.
        """
        ...

    async def record_process(self, thread_id: str, call_id: str, attempt: int, group: int, started: str) -> None:
        """Add the process group, once, before the command is let go."""
        ...

    async def finish(self, thread_id: str, call_id: str, attempt: int, owner: str, outcome: Outcome) -> bool:
        """Write the outcome, once, only as the owner of the newest attempt; False when this life lost it."""
        ...

    async def break_off(
        self,
        thread_id: str,
        call_id: str,
        attempt: int,
        owner: str,
        status: Literal["interrupted", "not_started"],
    ) -> None:
        """Record that the owner stopped the call itself. No effect on a row that has an outcome."""
        ...
