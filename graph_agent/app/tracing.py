"""Send a trace of each turn to an OpenTelemetry collector, if the setting `otel_endpoint` names one.

Events become spans by the conventions for generative AI: the turn, each model request in it, each call. A span has
names, times, counts and outcomes, and no text: no message, argument, result or path. A turn that ends in a kill
is not sent; the call log has it.
"""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from graph_agent.config.model_choice import display_url
from graph_agent.config.settings import Settings
from graph_agent.events import (
    Compacted,
    Event,
    EventBus,
    ModelMessage,
    SessionOpened,
    StepStarted,
    ToolCallDecided,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnStarted,
    WarningIssued,
)

__all__ = ["TurnTracer", "trace_turns"]

_log = logging.getLogger(__name__)

_HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
_TIMEOUT_S = 5.0
_INTERNAL, _CLIENT = 1, 3
_ERROR = {"code": 2}


def trace_turns(
    settings: Settings, bus: EventBus, model_label: Callable[[], str], env: Mapping[str, str]
) -> "TurnTracer | None":
    """Send the turns of this bus to the configured collector; None if there is none."""
    if settings.otel_endpoint is None:
        return None
    pairs = (pair.partition("=") for pair in env.get(_HEADERS, "").split(",") if "=" in pair)
    headers = {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}
    tracer = TurnTracer(f"{settings.otel_endpoint.removesuffix('/v1/traces')}/v1/traces", headers, bus, model_label)
    bus.subscribe(tracer)
    return tracer


@dataclass(slots=True)
class _Span:
    name: str
    start: int
    kind: int = _INTERNAL
    attributes: dict[str, str | int] = field(default_factory=dict)
    happened: list[dict[str, Any]] = field(default_factory=list)
    end: int = 0
    has_failed: bool = False
    span_id: str = field(default_factory=lambda: secrets.token_hex(8))

    def close(self, at: int, attributes: Mapping[str, str | int], *, has_failed: bool) -> None:
        self.end, self.has_failed = at, has_failed
        self.attributes |= attributes


class TurnTracer:
    """Collects the spans of a turn, and posts them at its end from a separate thread: no turn waits for it."""

    def __init__(self, url: str, headers: Mapping[str, str], bus: EventBus, model_label: Callable[[], str]) -> None:
        self._url = url
        self._headers = headers
        self._bus = bus
        self._model_label = model_label
        self._sender = ThreadPoolExecutor(1, "traces")
        self._problem = ""
        self._thread_id = ""
        self._turn: _Span | None = None
        self._request: _Span | None = None
        self._calls: dict[str, _Span] = {}
        self._ended: list[_Span] = []

    def __call__(self, _number: int, event: Event) -> None:
        now = time.time_ns()
        match event:
            case SessionOpened(thread_id=thread_id):
                self._thread_id = thread_id
            case TurnStarted():
                self._begin(now)
            case _ if self._turn is not None:
                self._add(self._turn, event, now)

    async def close(self) -> None:
        """Wait for what is still being sent, for some seconds at most; a failure is a warning."""
        await asyncio.to_thread(self._sender.shutdown, wait=True)
        self._report()

    def _begin(self, now: int) -> None:
        self._report()
        self._request, self._calls, self._ended = None, {}, []
        self._turn = _Span(
            "invoke_agent graph-agent",
            now,
            attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "graph-agent"},
        )

    def _add(self, turn: _Span, event: Event, now: int) -> None:
        match event:
            case StepStarted():
                model, _, _ = self._model_label().partition(" @ ")
                asked: dict[str, str | int] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
                self._request = _Span(f"chat {model}", now, _CLIENT, asked)
            case ModelMessage(usage=usage) if self._request is not None:
                self._end(self._request, now, _usage(usage))
                self._request = None
            case ToolCallStarted(call_id=call_id, tool_name=name, attempt=attempt):
                self._calls[call_id] = _call_span(call_id, name, now, {"graph_agent.attempt": attempt})
            case ToolCallFinished(call_id=call_id, tool_name=name, status=status, outcome=outcome):
                span = self._calls.pop(call_id, None) or _call_span(call_id, name, now, {})
                about = {"graph_agent.call.status": status, "graph_agent.call.outcome": outcome or ""}
                self._end(span, now, about, has_failed=status in ("error", "interrupted"))
            case ToolCallDecided(call_id=call_id, kind=kind):
                turn.happened.append(_span_event("decision", now, {"gen_ai.tool.call.id": call_id, "kind": kind}))
            case Compacted(tokens_before=before, tokens_after=after):
                turn.happened.append(
                    _span_event("compaction", now, {"tokens_before": before, "tokens_after": after})
                )
            case WarningIssued(wait_s=seconds) if seconds:
                turn.happened.append(_span_event("retry", now, {"wait_ms": round(seconds * 1000)}))
            case TurnEnded(status=status, usage=usage):
                self._finish(turn, now, status, usage)
            case _:
                pass

    def _end(self, span: _Span, now: int, attributes: Mapping[str, str | int], *, has_failed: bool = False) -> None:
        span.close(now, attributes, has_failed=has_failed)
        self._ended.append(span)

    def _finish(self, turn: _Span, now: int, status: str, usage: Mapping[str, Any]) -> None:
        for span in (*([self._request] if self._request else []), *self._calls.values()):
            self._end(span, now, {}, has_failed=True)
        about = {"gen_ai.conversation.id": self._thread_id, "graph_agent.turn.status": status}
        self._end(turn, now, about | _usage(usage), has_failed=status in ("model_error", "failed"))
        self._turn = None
        body = _body(self._ended, turn.span_id)
        self._sender.submit(self._post, body)

    def _post(self, body: bytes) -> None:
        import httpx  # noqa: PLC0415 - slow to load

        headers = {"Content-Type": "application/json", **self._headers}
        try:
            answer = httpx.post(self._url, content=body, headers=headers, timeout=_TIMEOUT_S)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            self._problem = str(error).partition("\n")[0] or type(error).__name__
        else:
            # Not `raise_for_status`: its message has the whole address, with a password if there is one.
            self._problem = "" if answer.is_success else f"it answered {answer.status_code}"
        if self._problem:
            _log.warning("a trace could not be sent: %s", self._problem)

    def _report(self) -> None:
        problem, self._problem = self._problem, ""
        if problem:
            self._bus.publish(
                WarningIssued(f"A trace could not be sent to {display_url(self._url)} (otel_endpoint): {problem}")
            )


def _call_span(call_id: str, name: str, now: int, more: Mapping[str, str | int]) -> _Span:
    about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id}
    return _Span(f"execute_tool {name}", now, attributes={**about, **more})


def _usage(usage: Mapping[str, Any]) -> dict[str, str | int]:
    counts = {f"gen_ai.usage.{name}": usage.get(name) for name in ("input_tokens", "output_tokens")}
    return {name: count for name, count in counts.items() if isinstance(count, int)}


def _span_event(name: str, now: int, attributes: Mapping[str, str | int]) -> dict[str, Any]:
    return {"name": name, "timeUnixNano": str(now), "attributes": _attributes(attributes)}


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
        if value != ""
    ]


def _body(spans: list[_Span], root: str) -> bytes:
    """The spans of one trace as OTLP in JSON; all but the root are its children."""
    trace_id = secrets.token_hex(16)
    sent = [
        {
            "traceId": trace_id,
            "spanId": span.span_id,
            **({} if span.span_id == root else {"parentSpanId": root}),
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": str(span.start),
            "endTimeUnixNano": str(span.end),
            "attributes": _attributes(span.attributes),
            "events": span.happened,
            "status": _ERROR if span.has_failed else {},
        }
        for span in spans
    ]
    scope = {"scope": {"name": "graph_agent"}, "spans": sent}
    resource = {"attributes": _attributes({"service.name": "graph-agent"})}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}).encode()
