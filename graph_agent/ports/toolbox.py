"""What the graph needs of tools and policy: preparing and running calls, early reads, mentions, hooks."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from graph_agent.calls import CallKind, Risk, ToolCallInfo
from graph_agent.ports.model import Delta

__all__ = [
    "NO_EARLY_READS",
    "NO_HOOKS",
    "NO_MENTION_EXPANSION",
    "EarlyReads",
    "ExpandedMessage",
    "Finding",
    "GrantEffect",
    "HookedCall",
    "Hooks",
    "Intent",
    "Mentions",
    "Outcome",
    "PreparedCall",
    "Proposal",
    "ProposedRules",
    "ReadBuffer",
    "RuleChoice",
    "SandboxInfo",
    "Scope",
    "Toolbox",
    "no_sandbox_info",
]

ReadBuffer = Callable[[Path], Awaitable[str | None]]
"""The text of a file as the user's editor shows it, saved or not; None if it does not open such a file.

Raises TimeoutError if the editor does not answer.
"""


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
    calls_in_message: int = 1
    """How many calls the model's message has: together their results must have room in the next request."""
    follows_change: bool = False
    """A call before this one in the same message may change what it finds when its turn comes."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """What a call would do, determined without effects."""

    tool_name: str
    """Registered name where the tool is known."""
    arguments: dict[str, Any]
    """Coerced to the schema; as given where they are unusable."""
    verdict: Literal["allow", "ask", "deny", "unusable"]
    """Unusable: unknown tool or bad arguments; `reason` then says to the model what to do instead."""
    reason: str = ""
    rule: str = ""
    """Name of the policy rule that spoke."""
    risk: Risk = "medium"
    """Of this very call."""
    kind: CallKind = "execute"
    concurrency_safe: bool = False
    requires_input: bool = False
    """The call is a question to the user: it is answered in words, never approved."""
    resumable: bool = False
    """After an interruption, the next attempt continues where this one stopped."""
    summary: str = ""
    """One line for the user: what the call is about."""
    paths: tuple[str, ...] = ()
    """Where the paths in the arguments lead; the run opens nothing else unless policy evaluates that again."""
    preview: dict[str, Any] | None = None
    """`{"kind": "diff" | "text", "text", "observed": {path, device, inode, sha256} | {folder} | None}`; JSON."""
    risk_reason: str = ""
    """What the call does, to be read after "it"; empty where only the risk of the tool is known."""


GrantEffect = Literal["allow", "deny"]
"""What a stored rule does with the calls that it covers; deny wins."""
RuleChoice = Literal["exact", "prefix"]
"""exact: this very call. prefix: every command with the same beginning."""


@dataclass(frozen=True, slots=True)
class ProposedRules:
    """The rules of one choice, all of them needed."""

    rules: tuple[str, ...]
    prefixes: tuple[str, ...] = ()
    """Those of the rules that end with ` *` for any arguments; the others mean their words alone."""
    coverage: str = ""
    """What the rules allow, also beyond the call, as a sentence."""
    folders: tuple[tuple[str, ...], ...] = ()
    """See `AlwaysRules.folders`."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What *always* would allow, or *always deny* deny, from now on."""

    rules: tuple[str, ...] = ()
    """Exact rules; empty when this very call cannot always be allowed, or denied."""
    objection: str = ""
    """Why not, as a sentence."""
    folder: str = "."
    """Where a command would start, relative to the workspace: a rule about one holds only there."""
    coverage: str = ""
    """What the rules allow, also beyond the call, as a sentence."""
    folders: tuple[tuple[str, ...], ...] = ()
    """See `AlwaysRules.folders`."""
    prefix: ProposedRules | None = None
    """The wider choice for a command; None where there is none."""
    denied: str = ""
    """Why the call cannot run now, even if it is approved: the mode or a rule changed since it was asked about."""

    def choice(self, kind: RuleChoice) -> ProposedRules | None:
        """The rules of a choice; None where there is none."""
        if kind == "prefix":
            return self.prefix
        return ProposedRules(self.rules, (), self.coverage, self.folders) if self.rules else None


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
    """The result of a call that ran to its end."""

    status: Literal["success", "error"]
    output: str
    """For the model."""
    error: str | None = None
    summary: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    """For rendering and for the program (`error_type`, `diff`, `exit_code`); never sent to the model.

    `cwd` and `todo` are taken into the thread's state. `shown`, with its `path`, is given back to later calls about
    that path, as long as the output stands whole before the model.
    """


@dataclass(frozen=True, slots=True)
class Finding:
    """What the reconciler of a tool found out about an interrupted call: a proposal, not a decision."""

    verdict: Literal["already_applied", "not_applied", "something_else", "unknown"]
    detail: str


class Toolbox(Protocol):
    """The enabled tools, behind policy."""

    def declarations(self, mode: str, loaded: Sequence[str] = ()) -> Sequence[Mapping[str, Any]]:
        """OpenAI function declarations of what is offered in this mode, in a stable order.

        Tools that are offered by name alone are declared once they are among the loaded ones, at the end.
        """

    async def prepare(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        """Find, validate, evaluate and preview a call; no effects. Never raises for a bad call.

        With a call id the result is kept for this attempt: preparing it again returns the same, and running it uses
        what was computed, until rules, mode or the target files change.
        """

    async def propose(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, effect: GrantEffect = "allow"
    ) -> Proposal:
        """The narrowest rules that would let this call run unasked, or deny it; no effects, never raises."""

    async def record_intent(self, call: ToolCallInfo, scope: Scope) -> Intent | None:
        """Store the before-image of what a write is about to change and say what it will become.

        None where the tool cannot know (shell, network) or has no effect. Never raises for a bad call: running it
        will tell.
        """

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        """Execute an approved call with its time limit; failures are outcomes.

        Cancelling this coroutine stops the tool and everything it started, then raises CancelledError.
        """

    async def reconcile(self, call: ToolCallInfo, intent: Intent | None, scope: Scope) -> Finding:
        """Find out what an interrupted call did; no effects."""

    async def partial_output(self, call: ToolCallInfo, attempt: int, scope: Scope) -> str:
        """The end of the output of an attempt that was interrupted, readable; empty where it wrote nothing."""


class EarlyReads(Protocol):
    """Reads ahead of their calls. What was read is kept in memory, until the toolbox runs the very same call.

    Nothing of it shows: no record, no event, no note of what was read, unless the call itself runs. By default
    nothing is read.
    """

    def begin(self, scope: Scope) -> None:
        """Prepare for the next reply; drops what is left of an earlier one."""
        return

    def add_delta(self, delta: Delta) -> None:
        """Add a piece of the reply; starts a read as soon as its call is complete."""
        return

    def finish(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """End the reply, which contains these calls by name and arguments; drops all other early reads."""
        return


class _NoEarlyReads(EarlyReads):
    """Every call waits until it is marked."""


NO_EARLY_READS: EarlyReads = _NoEarlyReads()


@dataclass(frozen=True, slots=True)
class ExpandedMessage:
    """A message with the content of the files that it mentions."""

    text: str
    """As it was typed, with the contents behind it."""
    images: Sequence[Mapping[str, Any]] = ()
    """References `{"blob", "media_type", "name"}`; those of older threads have no name."""
    notes: Sequence[str] = ()
    """What was not put in, a sentence each, for the user."""


class Mentions(Protocol):
    """Reads the files that messages mention; by default it reads nothing."""

    async def expand(self, text: str, scope: Scope) -> ExpandedMessage:
        """The message with the files it names, as far as they may be read without approval."""
        return ExpandedMessage(text)


class _NoMentions(Mentions):
    """Messages are left as they are."""


NO_MENTION_EXPANSION: Mentions = _NoMentions()


@dataclass(frozen=True, slots=True)
class HookedCall:
    """What hooks made of a call that the model requested."""

    arguments: dict[str, Any]
    changed_by: str = ""
    """The hooks that changed the arguments, for messages; empty if none did."""
    objection: str = ""
    """Why the call must not run; empty where no hook objects."""


class Hooks(Protocol):
    """The user's own commands; none of them is ever part of a call. By default there are none."""

    @property
    def has_message_hooks(self) -> bool:
        """Whether there are hooks for messages."""
        return False

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        """Text for the model, sent with the next message; `source` is startup for a new thread, else resume."""
        return ""

    async def message_submitted(self, thread_id: str, text: str, mode: str) -> str:
        """Text for the model, sent behind this message, which is not sent yet; empty for nothing.

        Raises:
            MessageBlocked: it must not be sent.
        """
        return ""

    async def call_requested(self, call: PreparedCall, scope: Scope, call_id: str, attempt: int) -> HookedCall:
        """A call of a new message, not recorded yet; changed arguments are validated and evaluated again."""
        return HookedCall(call.arguments)

    async def approval_answered(self, call: ToolCallInfo, answer: Mapping[str, Any], scope: Scope) -> None:
        """The approval question of a call was answered; runs before the answer is recorded and the call starts."""
        return

    async def before(self, call: ToolCallInfo, scope: Scope) -> str:
        """Why the call must not run; empty where no hook objects. Runs before the start of the call is recorded."""
        return ""

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:
        """Text for the model, sent behind the result, which is recorded already; empty for nothing."""
        return ""

    async def turn_ended(self, thread_id: str, status: str, answer: str) -> None:
        """A turn of this thread came to its end."""
        return


class _NoHooks(Hooks):
    """No commands."""


NO_HOOKS: Hooks = _NoHooks()


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """The sandbox as it is on this machine, now."""

    name: str
    """bubblewrap or Landlock; none where the machine has neither; off where the user turned it off."""
    description: str
    """What a command may do in it, or why it is missing."""
    is_active: bool = False
    tools: tuple[str, ...] = ("bash", "powershell")
    """The tools whose calls it is about."""

    @property
    def label(self) -> str:
        """For a status line."""
        return "no sandbox" if self.name == "none" else f"sandbox {self.name}"


def no_sandbox_info() -> SandboxInfo:
    """For sessions without a sandbox."""
    return SandboxInfo("off", "commands run with all your rights", tools=())
