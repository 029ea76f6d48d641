"""The concrete parts a session works with; wired in graph_agent.app."""

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
from graph_agent.ports.toolbox import NO_HOOKS, NO_MENTION_EXPANSION, Hooks, Mentions
from graph_agent.ports.usage import UNLIMITED, Budget, SharedBudget
from graph_agent.session.subagents import SubAgents
from graph_agent.session.thread_graph import ThreadGraph

__all__ = ["SessionDependencies", "Thread"]


@dataclass(frozen=True, slots=True)
class Thread:
    """The thread a session is about, and under which name and mode it is worked on."""

    thread_id: str
    workspace: Path
    mode: str
    by: str
    """The name this session's answers carry, e.g. `pid 4711`."""
    max_steps: int
    from_checkpoint: str | None = None
    """An older checkpoint to go on from, as a new branch of the thread; None: from its newest."""
    roots: tuple[Path, ...] = ()
    """Folders beside the workspace that it may work in; resolved."""
    budget: Budget = UNLIMITED
    """What its requests may use; its steps are `max_steps`."""
    depth: int = 0
    """How many threads it is a sub-agent under."""
    shared_budget: SharedBudget | None = None
    """As a sub-agent: what its requests draw on beside others, in place of a budget of its own."""


@dataclass(frozen=True, slots=True)
class SessionDependencies:
    """What a session needs besides the thread itself."""

    run: ThreadGraph
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
    """The newest checkpoint id of a thread; empty when it has none."""
    is_imported: Callable[[str, str], Awaitable[bool]]
    """Whether a checkpoint of a thread came out of a file."""
    prune_if_grown: Callable[[], Awaitable[object]]
    """Forgets what of the thread need not stay, at the end of a turn."""
    instructions: Callable[[], str]
    clock: Clock
    bus: EventBus
    close: Callable[[], Awaitable[None]]
    """Closes what was opened for this session, the database last."""
    shells: BackgroundShells = field(default_factory=NoShells)
    sandbox: Callable[[], SandboxInfo] = no_sandbox_info
    """The sandbox, as it is here and now; the first look may take some milliseconds."""
    sub_agents: SubAgents = field(default_factory=SubAgents)
    """Those that work for this thread."""
    hooks: Hooks = NO_HOOKS
    """What the user wants done when a turn has ended; that of a sub-agent is a part of its parent's."""
    mentions: Mentions = NO_MENTION_EXPANSION
    """Reads the files that a message names."""
