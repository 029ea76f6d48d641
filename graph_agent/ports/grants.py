"""What a person allowed "always": kept beside the answers, listed and revoked by id."""

from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = ["Always", "Grant", "GrantScope", "Grants"]

GrantScope = Literal["thread", "project", "user"]
"""thread: this conversation in this workspace. project: this workspace. user: everywhere."""


@dataclass(frozen=True, slots=True)
class Always:
    """What goes with an approval that is given for later calls too."""

    scope: GrantScope
    rules: tuple[str, ...]
    """Exactly as they were shown."""
    place: str = "."
    """Where commands start, relative to the workspace; rules about commands hold only there."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Rules by which calls run unasked from now on."""

    scope: GrantScope
    rules: tuple[str, ...]
    """Exact rules, `*` included."""
    mode: str
    """The permission mode it was given in."""
    thread_id: str
    """Where it was given."""
    workspace: str
    call_id: str
    by: str
    at: str
    place: str = "."
    """See `Always.place`."""
    id: int = 0
    """0 until it is stored."""


class Grants(Protocol):
    """The grants that stand."""

    async def holding(self, thread_id: str, workspace: str) -> list[Grant]:
        """Those that hold in this thread and workspace, oldest first."""
        ...

    async def revoke(self, grant_id: int, by: str, at: str) -> Grant | None:
        """Take one back, for every process from its next call on; None where no such grant stands."""
        ...
