"""The thread of a session, and the dependencies that `graph_agent.app.session_parts` gives it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from graph_agent.events import EventBus
from graph_agent.ports import (
    Blobs,
    Clock,
    Decisions,
    Inbox,
    Journal,
    Models,
    Rewinds,
    SandboxInfo,
    ThreadLock,
    Toolbox,
    WorkspaceFiles,
    no_sandbox_info,
)
from graph_agent.ports.background import BackgroundShells, NoShells
from graph_agent.ports.model import FindContextWindow, assumed_context_window
from graph_agent.ports.toolbox import NO_HOOKS, NO_MENTION_EXPANSION, Hooks, Mentions, ReadBuffer
from graph_agent.ports.usage import UNLIMITED, Budget, SharedBudget
from graph_agent.session.subagents import SubAgents
from graph_agent.session.thread_graph import ThreadGraph

__all__ = ["SessionDependencies", "Thread"]


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread, and how this process works on it."""

    thread_id: str
    workspace: Path
    mode: str
    by: str
    """The name that answers of this session carry, e.g. `pid 4711`."""
    max_steps: int
    from_checkpoint: str | None = None
    """An older checkpoint to continue from, as a new branch of the thread; None: the newest one."""
    roots: tuple[Path, ...] = ()
    """Further folders it may work in, besides the workspace; resolved."""
    attached: frozenset[str] = frozenset()
    """Resolved files that the user attached on the command line, which approves reading them."""
    read_buffer: ReadBuffer | None = None
    """Asks the editor that this thread is open in; None if there is none, or it does not tell."""
    budget: Budget = UNLIMITED
    """What its requests may use; the steps are limited by `max_steps`."""
    depth: int = 0
    """0 for a thread of the user's own, otherwise the number of its parents."""
    role: str = ""
    """The instructions of the agent that was chosen for it; a part of the system prompt."""
    model: str = ""
    """For a sub-agent: profile or model that answers, if not that of its parent."""
    shared_budget: SharedBudget | None = None
    """For a sub-agent: the budget that it shares with its parent, instead of one of its own."""


@dataclass(frozen=True, slots=True)
class SessionDependencies:
    """What a session works with, besides the thread."""

    graph: ThreadGraph
    models: Models
    lock: ThreadLock
    decisions: Decisions
    journal: Journal
    toolbox: Toolbox
    blobs: Blobs
    inbox: Inbox
    rewinds: Rewinds
    files: WorkspaceFiles
    head: Callable[[str], Awaitable[str]]
    """The newest checkpoint id of a thread; empty if it has none."""
    is_imported: Callable[[str, str], Awaitable[bool]]
    """Whether a checkpoint of a thread came from an imported file."""
    prune_if_grown: Callable[[], Awaitable[object]]
    """Prunes the thread at the end of a turn."""
    store_mode: Callable[[str, str], Awaitable[None]]
    """Stores the permission mode in which a thread, by its id, continues in other processes."""
    instructions: Callable[[], str]
    clock: Clock
    bus: EventBus
    close: Callable[[], Awaitable[None]]
    """Closes what was opened for this session, the database last."""
    delete_if_empty: Callable[[], Awaitable[object]] | None = None
    """Deletes the thread if it has no message; called before it is released. None: it is kept."""
    shells: BackgroundShells = field(default_factory=NoShells)
    sandbox: Callable[[], SandboxInfo] = no_sandbox_info
    """The sandbox as it is now; the first look may take some milliseconds."""
    sub_agents: SubAgents = field(default_factory=SubAgents)
    hooks: Hooks = NO_HOOKS
    """The user's hooks; none for a sub-agent, whose turn is part of its parent's."""
    mentions: Mentions = NO_MENTION_EXPANSION
    """Reads the files that a message mentions."""
    find_context_window: FindContextWindow = assumed_context_window
