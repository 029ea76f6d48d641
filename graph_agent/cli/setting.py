"""What a chat begins with, and how it gets to another thread. Values only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graph_agent.cli.conversation import Conversation, Opener
from graph_agent.cli.servers_seen import ServersSeen

__all__ = ["Setting", "Visit"]


@dataclass(frozen=True, slots=True)
class Visit:
    """A thread to go to."""

    opener: Opener
    resumes: bool = False
    """The thread was there before: what is open on it comes before any prompt."""
    last_life: str = ""
    """Who held an unfinished thread last and how that ended; empty where nothing was left unfinished."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a chat begins with."""

    database: Path
    elsewhere: Callable[[str | None, Conversation], Visit]
    """The thread that an id means, or for None a new one, seen from the one that is left. Reads the database.

    Raises AgentError where there is no such thread.
    """
    again: Callable[[Conversation], Visit]
    """The thread of a session that is closed, to be opened anew as it was."""
    servers: ServersSeen = field(default_factory=ServersSeen)
    """How the servers of tools are doing in the present thread."""
    message: str | None = None
    """The first message, given on the command line."""
    introduction: Callable[[], Sequence[str]] = tuple
    """Lines about the model, asked for once everything is loaded."""
