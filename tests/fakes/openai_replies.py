"""What the fake server answers: one `Reply` per request, its builders, and its form on the wire."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

__all__ = ["CUT", "DELAY", "ERR", "SSE", "TC", "TCS", "TXT", "Reply", "reply_from_json"]

RAW = "RAW "
"""Start of an item of `SSE` that is sent as it stands, without being wrapped into choices[0].delta."""

_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@dataclass(frozen=True)
class Reply:
    """One scripted answer. Tests use the builders; script files hold these fields as a JSON object."""

    text: str | None = None
    calls: tuple[tuple[str, str, Any], ...] = ()
    """(id, tool name, arguments); arguments that are no string are sent as they are where not streamed."""
    finish: str | None = None
    """finish_reason; None chooses tool_calls or stop."""
    chunks: tuple[Any, ...] | None = None
    """Exact stream: each item a choices[0].delta, or a string that starts with `RAW `."""
    status: int = 200
    body: Any = None
    """Body of an error, as JSON; a string is sent as it stands."""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    """Wait before the first byte."""
    pace_s: float = 0.0
    """Wait before each streamed event."""
    linger_s: float = 0.0
    """Wait behind the last streamed event before the stream ends."""
    cut: bool = False
    """Close the connection in the middle of the answer."""
    cut_after: int | None = None
    """Streamed events before the cut; None: all items of an exact stream, two of any other."""
    done: bool = True
    """Whether the stream ends with [DONE]."""
    usage: Mapping[str, Any] | None = field(default_factory=lambda: dict(_USAGE))

    def completion(self, model: str) -> dict[str, Any]:
        """The answer as one body."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            message["tool_calls"] = [
                {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id_, name, arguments in self.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._finish()}
        body = {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [choice],
        }
        return body if self.usage is None else {**body, "usage": dict(self.usage)}

    def events(self, model: str, *, with_usage: bool) -> list[str]:
        """The answer as the payloads of server-sent events."""
        frame = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1, "model": model}
        choices: list[dict[str, Any]] = []
        payloads: list[str] = []
        if self.chunks is not None:
            payloads += [_exact(frame, item) for item in self.chunks]
        else:
            choices += [{"index": 0, "delta": delta, "finish_reason": None} for delta in self._deltas()]
        if self.chunks is None or self.finish is not None:
            choices.append({"index": 0, "delta": {}, "finish_reason": self._finish()})
        payloads += [json.dumps({**frame, "choices": [choice]}) for choice in choices]
        if with_usage and self.usage is not None and self.chunks is None:
            payloads.append(json.dumps({**frame, "choices": [], "usage": dict(self.usage)}))
        return [*payloads, "[DONE]"] if self.done else payloads

    def events_before_cut(self) -> int:
        """How many events leave before the connection is closed."""
        if self.cut_after is not None:
            return self.cut_after
        return len(self.chunks) if self.chunks is not None else 2

    def _finish(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")

    def _deltas(self) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "" if self.text is not None else None}]
        deltas += [{"content": piece} for piece in _halves(self.text or "")]
        for index, (id_, name, arguments) in enumerate(self.calls):
            raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
            first, *rest = _halves(raw) or [""]
            function = {"name": name, "arguments": first}
            deltas.append({"tool_calls": [{"index": index, "id": id_, "type": "function", "function": function}]})
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in rest]
        return deltas


def TXT(text: str, **options: Any) -> Reply:  # noqa: N802 -- the builders are written as in the case notation
    """One message with this text; options are fields of `Reply`."""
    return Reply(text=text, **options)


def TC(call_id: str, tool: str, arguments: Any, **options: Any) -> Reply:  # noqa: N802 -- case notation
    """One message with one call; arguments as the exact string, or an object that is encoded once."""
    return TCS((call_id, tool, arguments), **options)


def TCS(*calls: tuple[str, str, Any], **options: Any) -> Reply:  # noqa: N802 -- case notation
    """One message with several calls, each (id, tool, arguments)."""
    encoded = tuple((id_, tool, args if isinstance(args, str) else json.dumps(args)) for id_, tool, args in calls)
    return Reply(calls=encoded, **options)


def SSE(chunks: Sequence[Any], finish: str | None = None, **options: Any) -> Reply:  # noqa: N802 -- case notation
    """An exact stream; {"t": [...]} is short for {"tool_calls": [...]}; no finish chunk unless it is named."""
    return Reply(chunks=tuple(chunks), finish=finish, **options)


def ERR(status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:  # noqa: N802 -- case notation
    """An HTTP error with this body; a string body becomes `{"error": {"message": ...}}`."""
    shaped = {"error": {"message": body}} if isinstance(body, str) else body
    return Reply(status=status, body=shaped or {"error": {"message": f"fake {status}"}}, headers=headers or {})


def DELAY(seconds: float, reply: Reply) -> Reply:  # noqa: N802 -- case notation
    """The same answer, its first byte that much later."""
    return replace(reply, delay_s=seconds)


def CUT(reply: Reply, after: int | None = None) -> Reply:  # noqa: N802 -- case notation
    """The same answer, its connection closed in the middle: after that many streamed events, or at half a body."""
    return replace(reply, cut=True, cut_after=after, done=False)


def reply_from_json(value: Any) -> Reply:
    """A reply from a script file: a string is its text, an object holds fields of `Reply`."""
    if isinstance(value, str):
        return TXT(value)
    unknown = value.keys() - {item.name for item in fields(Reply)}
    if unknown:
        raise ValueError(f"unknown fields {sorted(unknown)} in scripted reply {value!r}")
    options = dict(value)
    calls = options.pop("calls", [])
    if "chunks" in options:
        options["chunks"] = tuple(options["chunks"])
    return TCS(*[(id_, tool, args) for id_, tool, args in calls], **options)


def _exact(frame: dict[str, Any], item: Any) -> str:
    if isinstance(item, str):
        return item.removeprefix(RAW)
    delta = {("tool_calls" if key == "t" else key): value for key, value in item.items()}
    return json.dumps({**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]
