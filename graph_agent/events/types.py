"""What happened, as frozen facts in the past tense. JSON values only: each can be written as a line and read back.

A question is not an event: it is returned by the session and answered through it. The order within a turn:

    SessionOpened
    └── TurnStarted
        ├── Compacted                         the conversation was made shorter; before the request, or in its place
        ├── StepStarted                       one model request with what follows from it
        │   ├── TextArrived*, CallArrived*    deltas, may be dropped
        │   ├── ModelReplied
        │   ├── CallPlanned*                  one per call, in the model's order
        │   ├── CallAnswered*                 a person answered; before the call starts
        │   ├── CallStarted                   may interleave between neighbouring reads
        │   │   └── CallProgressed*
        │   └── CallEnded                     exactly one per call of the step, whatever became of it
        └── TurnEnded
    Warned, ShellEnded, ShellKept, ServerChanged   at any place

The words that facts are told in, each with its closed list.
"""

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

__all__ = [
    "AnswerKind",
    "CallAnswered",
    "CallArrived",
    "CallEnded",
    "CallPlanned",
    "CallProgressed",
    "CallStarted",
    "Compacted",
    "Event",
    "ModelReplied",
    "ProgressKind",
    "RestStatus",
    "ServerChanged",
    "ServerStage",
    "SessionOpened",
    "ShellEnd",
    "ShellEnded",
    "ShellKept",
    "StepStarted",
    "TextArrived",
    "TurnEnded",
    "TurnStarted",
    "Warned",
    "event_from_json",
    "event_to_json",
]

AnswerKind = Literal["approve", "edit", "answer", "reject", "retry", "done", "cancel"]
"""approve, edit, reject settle an approval; answer, reject a question that the model asks; retry, done, cancel one
of recovery."""

ProgressKind = Literal["shell_output", "bytes_fetched", "files_searched", "mcp_progress", "sub_agent_step"]
"""What a running call tells of itself."""

RestStatus = Literal[
    "done",
    "awaiting_approval",
    "interrupted",
    "limit",
    "stopped",
    "broken_off",
    "model_error",
    "failed",
    "held",
]
"""awaiting_approval: only approvals are open. interrupted: at least one recovery question is open.
broken_off: the model request is all that is open (an earlier life ended there), or the run was suspended.
held: another process has the thread."""

ShellEnd = Literal["own", "flood", "session", "found", "unseen", "walls"]
"""Why a background shell runs no more."""

ServerStage = Literal["starting", "running", "restarting", "failed"]
"""How far a server of tools is."""


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A process holds the thread now."""

    thread_id: str
    checkpoint_id: str
    """Empty for a fresh thread."""
    workspace: str
    model: str
    mode: str
    type: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """Work began: on a new message, or on what an earlier life left open (then the text is empty)."""

    text: str = ""
    type: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model request left."""

    step: int
    type: Literal["step_started"] = "step_started"


@dataclass(frozen=True, slots=True)
class TextArrived:
    """A piece of the reply."""

    text: str
    kind: Literal["text", "reasoning"] = "text"
    type: Literal["text_arrived"] = "text_arrived"


@dataclass(frozen=True, slots=True)
class CallArrived:
    """A piece of a call while it streams in."""

    index: int
    tool_name: str
    arguments_text: str
    type: Literal["call_arrived"] = "call_arrived"


@dataclass(frozen=True, slots=True)
class Compacted:
    """The conversation that the model is told was made shorter; nothing of it is lost in the thread."""

    tokens_before: int
    """Of the whole request, estimated."""
    tokens_after: int
    how: Literal["references", "summary", "outline"]
    """Old results became references; or also the older part a summary, by the model, or an outline made without."""
    type: Literal["compacted"] = "compacted"


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """The whole reply is there."""

    text: str
    call_ids: tuple[str, ...] = ()
    usage: dict[str, Any] = field(default_factory=dict)
    """input_tokens, output_tokens, total_tokens as the provider told them; empty when it did not."""
    type: Literal["model_replied"] = "model_replied"


@dataclass(frozen=True, slots=True)
class CallPlanned:
    """A call of the reply has a record: judged, and previewed where it has an effect."""

    call: dict[str, Any]
    """The whole `ToolCallInfo`."""
    type: Literal["call_planned"] = "call_planned"


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A person answered a question about a call."""

    call_id: str
    kind: AnswerKind
    by: str
    reason: str = ""
    type: Literal["call_answered"] = "call_answered"


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The tool was entered; the journal says so too."""

    call_id: str
    tool_name: str
    display: str
    attempt: int = 1
    type: Literal["call_started"] = "call_started"


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """News from a running call."""

    call_id: str
    kind: ProgressKind
    text: str = ""
    """What a running command wrote, as it wrote it; of the others what the numbers say, in words."""
    done: float | None = None
    """Bytes, files, steps of a sub-agent, or whatever a server counts."""
    total: float | None = None
    """How many there will be, where that is known."""
    type: Literal["call_progressed"] = "call_progressed"


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call came to rest: success, error, cancelled, or interrupted (then a person decides)."""

    call_id: str
    tool_name: str
    status: str
    display: str = ""
    output: str = ""
    error: str | None = None
    reason: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    type: Literal["call_ended"] = "call_ended"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The graph came to rest, or waits for a person."""

    status: RestStatus
    answer: str = ""
    checkpoint_id: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    type: Literal["turn_ended"] = "turn_ended"


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the user should know that stops nothing."""

    text: str
    wait_s: float = 0.0
    """Seconds until what failed is tried again; 0 where nothing is waited for."""
    type: Literal["warned"] = "warned"


@dataclass(frozen=True, slots=True)
class ShellEnded:
    """A background shell runs no more, other than by a call of bash_kill."""

    shell_id: str
    command: str
    state: str
    """How it ended, in words."""
    why: ShellEnd = "own"
    """own: by itself. flood: it wrote too much. session: with the session. found: with the next one, as its own had
    died. unseen: by itself, while nobody watched. walls: its sandbox could not be set up."""
    type: Literal["shell_ended"] = "shell_ended"


@dataclass(frozen=True, slots=True)
class ShellKept:
    """A background shell goes on: after the session that had it, or in the one that has it now."""

    shell_id: str
    command: str
    type: Literal["shell_kept"] = "shell_kept"


@dataclass(frozen=True, slots=True)
class ServerChanged:
    """A server of tools began, is ready, is started once more, or is given up."""

    name: str
    state: ServerStage
    tools: int = 0
    """How many of its tools are offered."""
    reason: str = ""
    """Why it is started once more, or was given up."""
    type: Literal["server_changed"] = "server_changed"


Event = (
    SessionOpened
    | TurnStarted
    | StepStarted
    | TextArrived
    | CallArrived
    | Compacted
    | ModelReplied
    | CallPlanned
    | CallAnswered
    | CallStarted
    | CallProgressed
    | CallEnded
    | TurnEnded
    | Warned
    | ShellEnded
    | ShellKept
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
    values = {key: tuple(value) if key == "call_ids" else value for key, value in data.items() if key in known}
    event: Event = cls(**values)
    return event
