"""Events: what happened in a run, as frozen values of JSON types that can be written as lines and read back.

A question is not an event: the session returns it and takes the answer. The order within a turn:

    SessionOpened
    └── TurnStarted
        ├── Compacted                           before the model request, or in its place
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

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

__all__ = [
    "AnswerKind",
    "Compacted",
    "Event",
    "ModelMessage",
    "ProgressKind",
    "ServerChanged",
    "ServerStage",
    "SessionOpened",
    "ShellContinued",
    "ShellEnd",
    "ShellEnded",
    "StepStarted",
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
"""approve, edit, reject settle an approval; answer, reject a question that the model asks; retry, done, cancel one
of recovery."""

ProgressKind = Literal["shell_output", "bytes_fetched", "files_searched", "mcp_progress", "sub_agent_step"]
"""What a running call tells of itself."""

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

ShellEnd = Literal["exited", "output_limit", "session", "found_dead", "exited_unobserved", "sandbox_failed"]
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
    """Work began: on a new message, or on what an earlier run left open (then the text is empty)."""

    text: str = ""
    type: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model request left."""

    step: int
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
    """The conversation that the model is told was made shorter; nothing of it is lost in the thread."""

    tokens_before: int
    """Of the whole request, estimated."""
    tokens_after: int
    method: Literal["references", "summary", "outline"]
    """Old results became references; or also the older part a summary, by the model, or an outline made without."""
    type: Literal["compacted"] = "compacted"


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """The whole reply is there."""

    text: str
    call_ids: tuple[str, ...] = ()
    usage: dict[str, Any] = field(default_factory=dict)
    """input_tokens, output_tokens, total_tokens as the provider told them; empty when it did not."""
    type: Literal["message"] = "message"


@dataclass(frozen=True, slots=True)
class ToolCallCreated:
    """A call of the reply has a record: judged, and previewed where it has an effect."""

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
    """The tool was entered; the journal says so too."""

    call_id: str
    tool_name: str
    summary: str
    attempt: int = 1
    type: Literal["tool_call_started"] = "tool_call_started"


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """News from a running call."""

    call_id: str
    kind: ProgressKind
    text: str = ""
    """What a running command wrote, as it wrote it; of the others what the numbers say, in words."""
    done: float | None = None
    """Bytes, files, steps of a sub-agent, or whatever a server counts."""
    total: float | None = None
    """How many there will be, where that is known."""
    type: Literal["tool_call_progress"] = "tool_call_progress"


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A call came to rest: success, error, cancelled, or interrupted (then a person decides)."""

    call_id: str
    tool_name: str
    status: str
    summary: str = ""
    output: str = ""
    error: str | None = None
    reason: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    type: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The graph came to rest, or waits for a person."""

    status: TurnStatus
    answer: str = ""
    checkpoint_id: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    type: Literal["turn_ended"] = "turn_ended"


@dataclass(frozen=True, slots=True)
class WarningIssued:
    """Something the user should know that stops nothing."""

    text: str
    wait_s: float = 0.0
    """Seconds until what failed is tried again; 0 where nothing is waited for."""
    type: Literal["warning"] = "warning"


@dataclass(frozen=True, slots=True)
class ShellEnded:
    """A background shell runs no more, other than by a call of bash_kill."""

    shell_id: str
    command: str
    state: str
    """How it ended, in words."""
    reason: ShellEnd = "exited"
    """Why it ended; see `ShellEnd`."""
    type: Literal["shell_ended"] = "shell_ended"


@dataclass(frozen=True, slots=True)
class ShellContinued:
    """A background shell goes on: after the session that had it, or in the one that has it now."""

    shell_id: str
    command: str
    type: Literal["shell_continued"] = "shell_continued"


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
    values = {key: tuple(value) if key == "call_ids" else value for key, value in data.items() if key in known}
    event: Event = cls(**values)
    return event
