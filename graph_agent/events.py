"""Events: what happened in a run, as frozen values of JSON types; the bus that carries them; calls as they run.

A question is not an event: the session returns it and takes the answer. The order within a turn:

    SessionOpened
    └── TurnStarted
        ├── Compacted                           before the model request, or in its place
        ├── MessageAdded*                       before a model request
        ├── StepStarted                         one model request and what follows from it
        │   ├── TextDelta*, ToolCallDelta*      may be dropped
        │   ├── ModelMessage
        │   ├── ToolCallCreated*                one per call, in the model's order
        │   ├── ToolCallDecided*                a person answered, before the call starts
        │   ├── ToolCallStarted                 may interleave between neighbouring reads
        │   │   └── ToolCallProgress*
        │   └── ToolCallFinished                exactly one per call of the step, whatever its status
        └── TurnEnded
    WarningIssued, ShellEnded, ShellContinued, ServerChanged   anywhere
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

__all__ = [
    "AnswerKind",
    "CallOutcome",
    "Compacted",
    "Event",
    "EventBus",
    "LiveCall",
    "LiveCalls",
    "LiveState",
    "MessageAdded",
    "ModelMessage",
    "ProgressKind",
    "ServerChanged",
    "ServerStage",
    "SessionOpened",
    "ShellContinued",
    "ShellEnd",
    "ShellEnded",
    "StepStarted",
    "Subscriber",
    "TextDelta",
    "ToolCallCreated",
    "ToolCallDecided",
    "ToolCallDelta",
    "ToolCallFinished",
    "ToolCallProgress",
    "ToolCallStarted",
    "TurnEnded",
    "TurnStarted",
    "TurnStatus",
    "WarningIssued",
    "event_from_json",
    "event_to_json",
]

AnswerKind = Literal["approve", "edit", "answer", "reject", "retry", "done", "cancel"]
"""approve, edit, reject answer an approval; answer, reject a question that the model asks; retry, done, cancel one
of recovery."""

CallOutcome = Literal["rejected", "denied", "stopped", "cancelled"]
"""Why a call has the status cancelled: rejected by the user, denied by policy, stopped with its turn or by a limit,
cancelled by a recovery decision."""

ProgressKind = Literal["shell_output", "bytes_fetched", "files_searched", "mcp_progress", "sub_agent_step"]
"""What a running call reports."""

TurnStatus = Literal[
    "done",
    "awaiting_approval",
    "interrupted",
    "limit",
    "stopped",
    "resumable",
    "model_error",
    "failed",
    "held",
]
"""awaiting_approval: only approvals are open. interrupted: at least one recovery question is open.
resumable: only the model request is pending (an earlier run ended there), or this run was shut down before its end.
held: another process has the thread."""

ShellEnd = Literal[
    "exited",
    "output_limit",
    "memory_limit",
    "process_limit",
    "session",
    "found_dead",
    "user",
    "exited_unobserved",
    "sandbox_failed",
]
"""Why a background shell ended.

exited: on its own. output_limit: it wrote too much, for which only earlier versions end a shell. memory_limit,
process_limit: it exceeded a limit of the sandbox. session: with its session. found_dead: by the next session,
because its own had died. user: by the person at the terminal. exited_unobserved: on its own while no session ran.
sandbox_failed: its sandbox could not be made.
"""

ServerStage = Literal["starting", "running", "restarting", "failed"]
"""State of an MCP server."""


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The process opened the thread."""

    thread_id: str
    checkpoint_id: str
    """Empty for a new thread."""
    workspace: str
    model: str
    mode: str
    type: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn began with a new message, or with work that an earlier run left open (then the text is empty)."""

    text: str = ""
    type: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A message of the user was added to the running turn; the next model request holds it."""

    text: str
    type: Literal["message_added"] = "message_added"


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model request was sent."""

    step: int
    context_percent: int | None = None
    """How much of the model's context window the request fills, estimated."""
    type: Literal["step_started"] = "step_started"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply."""

    text: str
    kind: Literal["text", "reasoning"] = "text"
    type: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call while it streams in."""

    index: int
    tool_name: str
    arguments_text: str
    type: Literal["tool_call_delta"] = "tool_call_delta"


@dataclass(frozen=True, slots=True)
class Compacted:
    """The context that is sent to the model was compacted; the thread keeps the full transcript."""

    tokens_before: int
    """Of the whole request, estimated."""
    tokens_after: int
    method: Literal["references", "summary", "outline"]
    """references: only old results. summary, outline: older messages as well, with or without a model."""
    type: Literal["compacted"] = "compacted"


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """The model's reply is complete."""

    text: str
    call_ids: tuple[str, ...] = ()
    usage: dict[str, Any] = field(default_factory=dict)
    """input_tokens, output_tokens and total_tokens as the provider reported them; otherwise empty."""
    type: Literal["message"] = "message"


@dataclass(frozen=True, slots=True)
class ToolCallCreated:
    """A call of the reply was recorded, with the policy's decision and, if it has effects, a preview."""

    call: dict[str, Any]
    """The whole `ToolCallInfo`."""
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class ToolCallDecided:
    """A person answered a question about a call."""

    call_id: str
    kind: AnswerKind
    by: str
    reason: str = ""
    type: Literal["tool_call_decided"] = "tool_call_decided"


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The tool started; the start is in the journal."""

    call_id: str
    tool_name: str
    summary: str
    attempt: int = 1
    type: Literal["tool_call_started"] = "tool_call_started"


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """Progress of a running call."""

    call_id: str
    kind: ProgressKind
    text: str = ""
    """The raw output of a command; for other tools, the progress in words."""
    done: float | None = None
    """Bytes, files, steps of a sub-agent, or the unit of an MCP server."""
    total: float | None = None
    """The expected final value, if known."""
    type: Literal["tool_call_progress"] = "tool_call_progress"


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A call ended: success, error, cancelled, or interrupted (then a person decides)."""

    call_id: str
    tool_name: str
    status: str
    summary: str = ""
    output: str = ""
    error: str | None = None
    reason: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    outcome: CallOutcome | None = None
    """Why it is cancelled; null for every other status."""
    decided_by: str = ""
    """Who or what decided that it is cancelled: "policy", "user" (stopped the turn), "limit", or the name a person
    answered under."""
    outside_sandbox: bool = False
    """Whether a person let it run outside the sandbox."""
    type: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn ended, or is waiting for a person."""

    status: TurnStatus
    answer: str = ""
    checkpoint_id: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    questions: tuple[dict[str, Any], ...] = ()
    """The calls that wait for a person, each with `call_id`, `thread_id` (if a sub-agent asks), `tool_name`, `kind`
    (approval or recovery), `risk` and `risk_reason`."""
    turn_id: str = ""
    """Id of the message that began the turn: the same in every process that works on the turn."""
    type: Literal["turn_ended"] = "turn_ended"


@dataclass(frozen=True, slots=True)
class WarningIssued:
    """A problem that does not stop the run."""

    text: str
    wait_s: float = 0.0
    """Seconds until the next retry; 0 if there is none."""
    type: Literal["warning"] = "warning"


@dataclass(frozen=True, slots=True)
class ShellEnded:
    """A background shell ended, but not by a call of bash_kill."""

    shell_id: str
    command: str
    state: str
    """How it ended, in words."""
    reason: ShellEnd = "exited"
    """Why it ended; see `ShellEnd`."""
    type: Literal["shell_ended"] = "shell_ended"


@dataclass(frozen=True, slots=True)
class ShellContinued:
    """A background shell keeps running after its session, or was reattached by this one."""

    shell_id: str
    command: str
    type: Literal["shell_continued"] = "shell_continued"


@dataclass(frozen=True, slots=True)
class ServerChanged:
    """An MCP server starts, is ready, is restarted, or has failed."""

    name: str
    state: ServerStage
    tools: int = 0
    """How many of its tools are enabled."""
    reason: str = ""
    """Why it is restarted, or has failed."""
    type: Literal["server_changed"] = "server_changed"


Event = (
    SessionOpened
    | TurnStarted
    | MessageAdded
    | StepStarted
    | TextDelta
    | ToolCallDelta
    | Compacted
    | ModelMessage
    | ToolCallCreated
    | ToolCallDecided
    | ToolCallStarted
    | ToolCallProgress
    | ToolCallFinished
    | TurnEnded
    | WarningIssued
    | ShellEnded
    | ShellContinued
    | ServerChanged
)

_BY_TYPE: dict[str, Any] = {str(cls.__dataclass_fields__["type"].default): cls for cls in get_args(Event)}


def event_to_json(event: Event) -> dict[str, Any]:
    """The event as JSON values, `type` first."""
    data = asdict(event)
    return {"type": data.pop("type"), **data}


def event_from_json(data: dict[str, Any]) -> Event:
    """The event that `event_to_json` wrote; keys a newer version added are ignored.

    Raises:
        KeyError: no event has this type.
    """
    cls = _BY_TYPE[data["type"]]
    known = {item.name: item for item in fields(cls)}
    values = {
        key: tuple(value) if key in ("call_ids", "questions") else value
        for key, value in data.items()
        if key in known
    }
    event: Event = cls(**values)
    return event


Subscriber = Callable[[int, Event], None]
"""Called with the event's number (1, 2, 3 … per bus, no gaps) and the event, in order, on the publishing thread."""

_log = logging.getLogger(__name__)


class EventBus:
    """Numbers events and hands each to every subscriber, in order of subscription.

    `begins_with` is the type of the event that is to come first: what is published earlier waits, and follows it.
    """

    def __init__(self, begins_with: str | None = None) -> None:
        self._subscribers: list[Subscriber] = []
        self._count = 0
        self._begins_with = begins_with
        self._waiting: list[Event] = []

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; the returned function removes it."""
        self._subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in self._subscribers:
                self._subscribers.remove(subscriber)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Deliver an event; a subscriber that fails is logged and never breaks the run or the others."""
        if self._begins_with not in (None, event.type):
            self._waiting.append(event)
            return
        self._count += 1
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(self._count, event)
            except Exception:  # noqa: BLE001 - the one boundary between the run and its subscribers
                _log.exception("subscriber failed on event %d (%s)", self._count, event.type)
        if self._begins_with is not None:
            self.release()

    def release(self) -> None:
        """Deliver the events that wait for the first one, whether or not it was published."""
        self._begins_with = None
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            self.publish(event)


LiveState = Literal["WAIT", "DOING", "SUCCESS", "ERROR"]


@dataclass(frozen=True, slots=True)
class LiveCall:
    """Everything known about a call so far."""

    call_id: str = ""
    """Empty while it still streams in: only the record has the id that counts."""
    tool_name: str = ""
    state: LiveState = "WAIT"
    """WAIT until it runs, DOING, then SUCCESS, or ERROR for every other end."""
    arguments_text: str = ""
    """While it streams in: the incomplete JSON received so far."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of its record; a later record is merged in deeply."""
    summary: str = ""
    progress: ToolCallProgress | None = None
    """The newest."""
    result: str = ""
    error: str | None = None


class LiveCalls:
    """Combines the events of each call into one value, without storing events. A call is dropped when it ends."""

    def __init__(self) -> None:
        self._streaming: dict[int, LiveCall] = {}
        self._calls: dict[str, LiveCall] = {}

    def take(self, event: Event) -> LiveCall | None:
        """The call that the event is about, as it is now; None for other events."""
        match event:
            case ToolCallDelta(index=index, tool_name=name, arguments_text=piece):
                before = self.streaming(index)
                self._streaming[index] = replace(
                    before, tool_name=name, arguments_text=before.arguments_text + piece
                )
                return self._streaming[index]
            case ModelMessage() | StepStarted() | WarningIssued() | TurnEnded():
                # A warning may say that the reply begins anew.
                self._streaming.clear()
                return None
            case ToolCallFinished(call_id=call_id):
                ended = self._known(call_id, event.tool_name, event.summary)
                self._calls.pop(call_id, None)
                state: LiveState = "SUCCESS" if event.status == "success" else "ERROR"
                return replace(ended, state=state, result=event.output, error=event.error)
            case ToolCallCreated(call=record):
                now = self._known(record["call_id"], record["tool_name"], record.get("summary", ""))
                now = replace(now, params=_merged(now.params, record.get("arguments") or {}))
            case ToolCallStarted():
                now = replace(self._known(event.call_id, event.tool_name, event.summary), state="DOING")
            case ToolCallProgress():
                now = replace(self._known(event.call_id), state="DOING", progress=event)
            case _:
                return None
        self._calls[now.call_id] = now
        return now

    def streaming(self, index: int) -> LiveCall:
        """The call at this place of the reply that streams in; blank where none does."""
        return self._streaming.get(index, LiveCall())

    def _known(self, call_id: str, tool_name: str = "", summary: str = "") -> LiveCall:
        known = self._calls.get(call_id, LiveCall(call_id))
        return replace(known, tool_name=tool_name or known.tool_name, summary=summary or known.summary)


def _merged(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(before)
    for key, value in more.items():
        match merged.get(key), value:
            case dict(old), dict(new):
                merged[key] = _merged(old, new)
            case _:
                merged[key] = value
    return merged
