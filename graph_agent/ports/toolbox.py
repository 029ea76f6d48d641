"""What the graph needs of the tools and of policy: plan a call without effects, run it with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from graph_agent.calls import CallKind, Risk, ToolCallInfo

__all__ = ["Finding", "Intent", "Outcome", "Plan", "Proposal", "Scope", "Toolbox"]


@dataclass(frozen=True, slots=True)
class Scope:
    """Where calls are planned and run: one thread in one workspace, as the state has it."""

    thread_id: str
    mode: str
    """Permission mode: default, acceptEdits, plan, auto, dontAsk, bypassPermissions."""
    cwd: str = ""
    """Working directory of the shell, absolute; empty means the workspace itself."""
    todo: Sequence[Mapping[str, Any]] = ()
    """The thread's plan, for the call that reads it."""
    shown: Sequence[Mapping[str, Any]] = ()
    """What earlier results that the model still has whole show of the paths that the call names."""
    of_calls: int = 1
    """How many calls the model's message has: together their results must have room in the next request."""
    comes_after_change: bool = False
    """A call before this one in the same message may change what it finds when its turn comes."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would happen with a call, worked out without effects."""

    tool_name: str
    """Registered name where the tool is known."""
    arguments: dict[str, Any]
    """Coerced to the schema; as given where they are unusable."""
    verdict: Literal["allow", "ask", "deny", "unusable"]
    """Unusable: unknown tool or bad arguments; `reason` then tells the model what to do instead."""
    reason: str = ""
    rule: str = ""
    """Name of the policy rule that spoke."""
    risk: Risk = "medium"
    kind: CallKind = "execute"
    concurrency_safe: bool = False
    wants_answer: bool = False
    """The call is a question to the user: it is answered in words, never approved."""
    goes_on: bool = False
    """Broken off, the call goes on where it stood when it is run again."""
    display: str = ""
    """One line for the user: what the call is about."""
    paths: tuple[str, ...] = ()
    """Where the paths in the arguments lead; the run opens nothing else unless that is judged anew."""
    preview: dict[str, Any] | None = None
    """`{"kind": "diff" | "text", "text": ..., "seen": {path, device, inode, sha256} | {folder} | None}`; JSON."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What "always" would allow from now on."""

    rules: tuple[str, ...] = ()
    """Exact rules; empty when this call cannot be allowed always."""
    objection: str = ""
    """Why not, as a sentence."""
    place: str = "."
    """Where a command would start, relative to the workspace: a rule about one holds only there."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a call is about to do to a file, known before it runs; written into the journal with the claim."""

    path: str
    before_sha256: str | None
    """None: the file does not exist yet."""
    after_sha256: str
    before_blob: str | None = None
    """Reference of the stored before-image; None when there was no file."""
    before_mode: int | None = None
    """Permission bits of the file before, where they are known."""
    new_folder: str | None = None
    """The outermost folder that the call creates for the file."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call that ran to its end."""

    status: Literal["success", "error"]
    output: str
    """For the model."""
    error: str | None = None
    display: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    """For rendering and for the program (`error_type`, `diff`, `exit_code`); never sent to the model.

    `cwd` and `todo` are taken into the thread's state. `shown`, with its `path`, is given back to later calls about
    that path, as long as the output stands whole before the model.
    """


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look at the world says about an interrupted call: a proposal, not a decision."""

    verdict: Literal["already_applied", "not_applied", "something_else", "unknown"]
    detail: str


class Toolbox(Protocol):
    """The tools on offer, judged by policy."""

    def declarations(self, mode: str, loaded: Sequence[str] = ()) -> Sequence[Mapping[str, Any]]:
        """OpenAI function declarations of what is offered in this mode, in a stable order.

        Tools that are offered by name alone are declared once they are among the loaded ones, at the end.
        """
        ...

    async def plan(self, tool_name: str, arguments: Mapping[str, Any], scope: Scope) -> Plan:
        """Find, validate, coerce, judge and preview a call; no effects. Never raises for a bad call."""
        ...

    async def propose(self, tool_name: str, arguments: Mapping[str, Any], scope: Scope) -> Proposal:
        """The narrowest rules by which this very call would run unasked from now on; no effects, never raises."""
        ...

    async def intend(self, call: ToolCallInfo, scope: Scope) -> Intent | None:
        """Store the before-image of what a write is about to change and say what it will become.

        None where the tool cannot know (shell, network) or has no effect. Never raises for a bad call: running it
        will tell.
        """
        ...

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        """Execute an approved call with its time limit; failures are outcomes.

        Cancelling this coroutine stops the tool and everything it started, then raises CancelledError.
        """
        ...

    async def reconcile(self, call: ToolCallInfo, intent: Intent | None, scope: Scope) -> Finding:
        """Find out what an interrupted call did; no effects."""
        ...

    async def partial_output(self, call: ToolCallInfo, attempt: int, scope: Scope) -> str:
        """The end of what this attempt had written until it was broken off, readable; empty for nothing."""
        ...
