"""What a node receives besides the state, and what it returns."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from graph_agent.graph.edges import EdgeOutcome
from graph_agent.ports import Scope
from graph_agent.ports.usage import UNLIMITED, Budget, SharedBudget

if TYPE_CHECKING:
    from langchain_core.messages import HumanMessage

    from graph_agent.graph.state import AgentState


__all__ = [
    "GraphPosition",
    "RunContext",
    "SessionContext",
    "Step",
    "TakeMessages",
    "always_stored",
    "new_owner_token",
    "scope_of",
]

TakeMessages = Callable[[Scope], Awaitable[Sequence["HumanMessage"]]]


def new_owner_token() -> str:
    """An owner token: new in each process, and after each run that did not return."""
    return uuid4().hex


_PROCESS_TOKEN = new_owner_token()
_MAX_STEPS = 200


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context of a run. Without a session (under LangGraph's own server) the whole process is one run.

    What a client sends as context becomes one of these, so a node uses no field of it without `has_session`.
    """

    owner_token: str = field(default=_PROCESS_TOKEN)
    stop: bool = False
    """The user stopped the turn: ask nothing, run nothing, cancel what is open."""
    max_steps: int = _MAX_STEPS
    """Model requests in one turn."""
    budget: Budget = UNLIMITED
    """What the requests of the turn, and of the thread, may use."""
    finished_in_journal: frozenset[str] = frozenset()
    """Calls that the state holds as open and the journal as finished: continued from an older checkpoint."""
    started_calls: frozenset[str] = frozenset()
    """Calls that the state holds as open and that may have had an effect according to the journal."""
    reverted_attempts: Mapping[str, int] = field(default_factory=dict)
    """Of calls that a rewind reverted: the newest attempt, whose number is taken."""
    imported_calls: frozenset[str] = frozenset()
    """Calls that an imported file requests: a person is asked about each, whatever mode, rules and verdicts say."""
    mode: str = ""
    """Permission mode of this run; empty means the stored one. bypassPermissions is only ever here."""
    shared_budget: SharedBudget | None = None
    """The budget that a sub-agent shares with others; it has none of its own then."""
    budget_reset: str = ""
    """Set where a person let the turn continue after a limit in the middle of a call: a token that the turn stores
    with the new budget that it gets, once."""
    stopped_usage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Usage of sub-agents that were stopped before their calls are cancelled, by call id."""
    response_schema: Mapping[str, Any] | None = None
    """JSON Schema for the turn's answer; see `ModelRequest`."""
    take_messages: TakeMessages | None = None
    """The user's messages for the running turn, asked for before each request; none comes twice."""

    @property
    def has_session(self) -> bool:
        """Whether a session of ours runs the graph, which reads questions from the state; else the client of
        another program gets all of them in the interrupt."""
        return False


@dataclass(frozen=True, slots=True)
class SessionContext(RunContext):
    """The context that a session gives its runs. Nothing that a client sends becomes one."""

    @property
    def has_session(self) -> bool:
        """See `RunContext`."""
        return True


async def always_stored() -> bool:
    """For runs whose saver cannot prove anything, and for tests."""
    return True


@dataclass(frozen=True, slots=True)
class GraphPosition:
    """Where in the thread a node runs."""

    thread_id: str
    """The thread's id; as a part of another graph, one for each place in its thread."""
    checkpoint_id: str
    """The checkpoint this superstep rests on."""
    is_stored: Callable[[], Awaitable[bool]] = always_stored
    """Waits until the checkpoint is on disk; false if it does not get there, true where nothing can prove it."""


def scope_of(state: "AgentState", run: RunContext, here: GraphPosition) -> Scope:
    """The scope in which calls are prepared."""
    stored = state.get("mode", "default")
    mode = run.mode or ("default" if stored == "bypassPermissions" else stored)
    return Scope(here.thread_id, mode, state.get("cwd", ""), state.get("todo", ()))


class Step(NamedTuple):
    """What a node returns: the outcome that the edge table knows, and its writes to the state."""

    outcome: EdgeOutcome
    update: Mapping[str, Any]
    tasks: tuple[Mapping[str, Any], ...] = ()
    """Inputs of the tasks to start, where the outcome leads to a node that runs once per call."""
