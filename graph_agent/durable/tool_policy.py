"""What an application declares about a tool, and what it may meet when a call cannot simply run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from graph_agent.errors import AgentError, ConfigError

__all__ = [
    "KEY_PARAMETER",
    "CallHeld",
    "CallTakenOver",
    "OnUnknown",
    "RunningCall",
    "ToolPolicy",
    "UnknownCall",
    "UnknownOutcome",
    "Verdict",
]

KEY_PARAMETER = "idempotency_key"
"""A tool with a parameter of this name receives the key of its call."""

OnUnknown = Literal["ask", "tell_model", "raise", "retry"]
Verdict = Literal["applied", "not_applied", "unknown"]


class CallHeld(AgentError):
    """Another live worker runs this call; the message says which."""

    exit_code = 7


class CallTakenOver(AgentError):
    """While this worker ran the call, it was decided or started again elsewhere; its result is not recorded."""

    exit_code = 7


class UnknownOutcome(AgentError):
    """A call started and has no recorded outcome, and its policy is to raise."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class RunningCall:
    """The call that the current code runs for."""

    thread_id: str
    call_id: str
    attempt: int
    idempotency_key: str
    """The same in every attempt of the call."""


@dataclass(frozen=True, slots=True)
class UnknownCall:
    """A call that started and has no recorded outcome."""

    thread_id: str
    call_id: str
    tool_name: str
    arguments: Mapping[str, Any]
    attempt: int
    idempotency_key: str
    started_at: str
    """ISO-8601 UTC."""
    error: str = ""
    """What the tool raised, if that is why there is no outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """How calls of one tool are treated."""

    on_unknown: OnUnknown | None = None
    """What happens to a call that started and has no outcome. None: `retry` for a tool that may run twice, else
    `ask`."""
    idempotent: bool = False
    """Running a call a second time has no further effect."""
    read_only: bool = False
    """A call changes nothing."""
    approve: bool | Callable[[Mapping[str, Any]], bool | str] = False
    """Whether a person approves each call first, or a function of the tool call; a text is the reason to show."""
    reconcile: Callable[[UnknownCall], Verdict | tuple[Literal["applied"], str]] | None = None
    """Looks whether an unknown call took effect, before `on_unknown` applies. With `applied` goes the result.
    It may be called several times, in a worker thread under an asynchronous graph."""

    def action(self, tool_name: str, *, takes_key: bool) -> OnUnknown:
        """What happens to an unknown call of the tool.

        Raises:
            ConfigError: it would run again although nothing says that it may.
        """
        may_repeat = self.idempotent or self.read_only or takes_key
        if self.on_unknown == "retry" and not may_repeat:
            raise ConfigError(
                f"Tool {tool_name!r} has on_unknown='retry', but nothing says that it may run twice. Declare it "
                f"idempotent or read_only, give it a parameter {KEY_PARAMETER!r}, or choose another on_unknown."
            )
        return self.on_unknown or ("retry" if may_repeat else "ask")

    def approval_reason(self, tool_call: Mapping[str, Any]) -> str:
        """Why a person approves this call first; empty if nobody needs to."""
        asked = self.approve(tool_call) if callable(self.approve) else self.approve
        return asked if isinstance(asked, str) else "approval required" if asked else ""
