"""Send traces and metrics of each turn to an OpenTelemetry collector, if the user names one (OTLP over HTTP, JSON).

Events become spans by the conventions for generative AI: the turn, each model request in it, each call. What a turn
does in several processes, because a call was approved later or elsewhere, is one trace. Spans and metrics have
names, times, counts and outcomes, and no text: no message, argument, result or path. A turn that ends in a kill is
not sent; the call log has it.
"""

import asyncio
import json
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from threading import Thread
from typing import Any, NamedTuple
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

__all__ = ["Collector", "TurnTracer", "trace_turns"]

_log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
_MAX_TIMEOUT_S = 3_600.0
_CLOSE_S = 2.0
"""How long the end of a session waits for what is not sent yet."""
_INTERNAL, _CLIENT = 1, 3
_ERROR = {"code": 2}
_DELTA = 1


class Collector(NamedTuple):
    """Where traces and metrics go, and as whose."""

    traces_url: str
    metrics_url: str
    """Empty if no metrics are sent."""
    headers: Mapping[str, str]
    timeout_s: float
    resource: Mapping[str, str]

    @classmethod
    def chosen(cls, endpoint: str | None, env: Mapping[str, str]) -> "Collector | None":
        """The collector that `otel_endpoint` or OpenTelemetry's variables name; None if none is named.

        The variables: https://opentelemetry.io/docs/specs/otel/protocol/exporter/
        """
        if env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return None
        base = (
            (endpoint or env.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")).strip().rstrip("/").removesuffix("/v1/traces")
        )
        traces = env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "") if endpoint is None else ""
        metrics = env.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "") if endpoint is None else ""
        traces = traces.strip() or (f"{base}/v1/traces" if base else "")
        if not traces.startswith(("http://", "https://")):
            return None
        metrics = metrics.strip() or (f"{base}/v1/metrics" if base else "")
        if env.get("OTEL_METRICS_EXPORTER", "").strip() == "none":
            metrics = ""
        try:
            timeout_s = float(env.get("OTEL_EXPORTER_OTLP_TIMEOUT", "")) / 1000
        except ValueError:
            timeout_s = _TIMEOUT_S
        resource = {"service.name": "graph-agent", **_pairs(env.get("OTEL_RESOURCE_ATTRIBUTES", ""))}
        if name := env.get("OTEL_SERVICE_NAME"):
            resource["service.name"] = name
        headers = _pairs(env.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
        timeout_s = min(timeout_s, _MAX_TIMEOUT_S) if timeout_s > 0 else _TIMEOUT_S
        return cls(traces, metrics, headers, timeout_s, resource)


def _pairs(text: str) -> dict[str, str]:
    """`name=value,name=value` with percent-encoded values, as the variables write it."""
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}


def trace_turns(
    settings: Settings, bus: EventBus, model_label: Callable[[], str], env: Mapping[str, str]
) -> "TurnTracer | None":
    """Send the turns of this bus to the chosen collector; None if there is none."""
    collector = Collector.chosen(settings.otel_endpoint, env)
    if collector is None:
        return None
    tracer = TurnTracer(collector, bus, model_label)
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

    def __init__(self, collector: Collector, bus: EventBus, model_label: Callable[[], str]) -> None:
        self._collector = collector
        self._bus = bus
        self._model_label = model_label
        self._sending: list[Thread] = []
        self._problem = ""
        self._thread_id = ""
        self._turn: _Span | None = None
        self._is_continued = False
        self._request: _Span | None = None
        self._calls: dict[str, _Span] = {}
        self._ended: list[_Span] = []

    def __call__(self, _number: int, event: Event) -> None:
        now = time.time_ns()
        match event:
            case SessionOpened(thread_id=thread_id):
                self._thread_id = thread_id
            case TurnStarted(text=text):
                self._begin(now, is_continued=not text)
            case _ if self._turn is not None:
                self._add(self._turn, event, now)

    async def close(self) -> None:
        """Wait for what is still being sent, for two seconds at most; a failure is a warning."""
        await asyncio.to_thread(_join, self._sending, _CLOSE_S)
        if any(thread.is_alive() for thread in self._sending):
            self._problem = f"it did not answer within {_CLOSE_S:g} s"
        self._report()

    def _begin(self, now: int, *, is_continued: bool) -> None:
        self._report()
        self._request, self._calls, self._ended = None, {}, []
        self._is_continued = is_continued
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
            case TurnEnded():
                self._finish(turn, now, event)
            case _:
                pass

    def _end(self, span: _Span, now: int, attributes: Mapping[str, str | int], *, has_failed: bool = False) -> None:
        span.close(now, attributes, has_failed=has_failed)
        self._ended.append(span)

    def _finish(self, turn: _Span, now: int, event: TurnEnded) -> None:
        for span in (*([self._request] if self._request else []), *self._calls.values()):
            self._end(span, now, {}, has_failed=True)
        about = {"gen_ai.conversation.id": self._thread_id, "graph_agent.turn.status": event.status}
        self._end(turn, now, about | _usage(event.usage), has_failed=event.status in ("model_error", "failed"))
        self._turn = None
        trace = _trace_ids(self._thread_id, event.turn_id)
        parent = trace.root_id if self._is_continued and event.turn_id else ""
        if not parent:
            turn.span_id = trace.root_id
        collector = self._collector
        posts = [(collector.traces_url, _spans_body(self._ended, turn, trace.trace_id, parent, collector.resource))]
        if collector.metrics_url:
            posts.append((collector.metrics_url, _metrics_body(self._ended, turn, event, collector.resource)))
        # A daemon: the process does not wait for a collector that does not answer.
        thread = Thread(target=self._post_all, args=(posts,), name="traces", daemon=True)
        self._sending = [*(one for one in self._sending if one.is_alive()), thread]
        thread.start()

    def _post_all(self, posts: Sequence[tuple[str, bytes]]) -> None:
        for url, body in posts:
            self._post(url, body)

    def _post(self, url: str, body: bytes) -> None:
        import httpx  # noqa: PLC0415 - slow to load

        headers = {"Content-Type": "application/json", **self._collector.headers}
        try:
            # Streamed: the body of the answer is not read, whatever its size.
            with httpx.stream(
                "POST", url, content=body, headers=headers, timeout=self._collector.timeout_s
            ) as answer:
                pass
        except (httpx.NetworkError, httpx.TimeoutException) as error:
            problem = str(error).partition("\n")[0] or type(error).__name__
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            problem = type(error).__name__  # Its text may quote a header or the address, which may hold a secret.
        else:
            # Not `raise_for_status`: its message has the whole address, with a password if there is one. Some
            # collectors take traces only, and have no place for metrics.
            is_unknown = answer.status_code == 404 and url != self._collector.traces_url
            problem = "" if answer.is_success or is_unknown else f"it answered {answer.status_code}"
        if problem:
            _log.warning("a trace could not be sent: %s", problem)
            self._problem = problem

    def _report(self) -> None:
        problem, self._problem = self._problem, ""
        if problem:
            url = display_url(self._collector.traces_url)
            self._bus.publish(WarningIssued(f"A trace could not be sent to {url} (otel_endpoint): {problem}"))


def _join(threads: Sequence[Thread], seconds: float) -> None:
    """Wait until all of them have ended, at most so long in all."""
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))


class _Trace(NamedTuple):
    trace_id: str
    root_id: str


def _trace_ids(thread_id: str, turn_id: str) -> _Trace:
    """The ids of the trace of a turn: the same in every process that works on it."""
    digest = sha256(f"{thread_id}\0{turn_id}".encode()).hexdigest() if turn_id else secrets.token_hex(32)
    return _Trace(digest[:32], digest[32:48])


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


def _spans_body(
    spans: Sequence[_Span], turn: _Span, trace_id: str, parent: str, resource: Mapping[str, str]
) -> bytes:
    """The spans that a process adds to a trace: all but that of the turn are its children."""
    sent = [
        {
            "traceId": trace_id,
            "spanId": span.span_id,
            **({"parentSpanId": turn.span_id} if span is not turn else {"parentSpanId": parent} if parent else {}),
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
    return json.dumps(
        {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]}
    ).encode()


def _point(times: Mapping[str, str], value: float, attributes: Mapping[str, str | int]) -> dict[str, Any]:
    amount = {"asInt": str(value)} if isinstance(value, int) else {"asDouble": value}
    return {**times, **amount, "attributes": _attributes(attributes)}


def _total(name: str, unit: str, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kind = {"aggregationTemporality": _DELTA, "isMonotonic": True, "dataPoints": points}
    return {"name": name, "unit": unit, "sum": kind}


def _metrics_body(spans: Sequence[_Span], turn: _Span, event: TurnEnded, resource: Mapping[str, str]) -> bytes:
    """What this part of the turn adds to the counts, and how many calls wait at its end."""
    times = {"startTimeUnixNano": str(turn.start), "timeUnixNano": str(turn.end)}
    point = partial(_point, times)
    used = Counter[str]()
    for span in spans:
        for side in ("input", "output") if span is not turn else ():
            used[side] += int(span.attributes.get(f"gen_ai.usage.{side}_tokens", 0))
    # The usage of the event is that of the whole turn, which ends only once.
    cost = None if event.questions else event.usage.get("cost")
    calls = Counter(
        (str(span.attributes["gen_ai.tool.name"]), str(span.attributes.get("graph_agent.call.status", "")))
        for span in spans
        if "gen_ai.tool.name" in span.attributes
    )
    waiting = Counter(str(call["kind"]) for call in event.questions)
    seconds = (turn.end - turn.start) / 1e9
    metrics = [
        _total("graph_agent.turns", "{turn}", [point(1, {"status": event.status})]),
        _total("graph_agent.turn.duration", "s", [point(seconds, {"status": event.status})]),
        _total(
            "gen_ai.client.token.usage",
            "{token}",
            [point(int(n), {"gen_ai.token.type": k}) for k, n in used.items()],
        ),
        _total("graph_agent.cost", "1", [point(float(cost), {})] if isinstance(cost, int | float) else []),
        _total(
            "graph_agent.calls",
            "{call}",
            [point(n, {"gen_ai.tool.name": name, "status": status}) for (name, status), n in calls.items()],
        ),
        *(
            {"name": name, "unit": "{call}", "gauge": {"dataPoints": [point(waiting[kind], {})]}}
            for name, kind in (
                ("graph_agent.approvals.waiting", "approval"),
                ("graph_agent.calls.interrupted", "recovery"),
            )
        ),
    ]
    sent = [one for one in metrics if one.get("gauge") or one["sum"]["dataPoints"]]
    scope = {"scope": {"name": "graph_agent"}, "metrics": sent}
    return json.dumps(
        {"resourceMetrics": [{"resource": {"attributes": _attributes(resource)}, "scopeMetrics": [scope]}]}
    ).encode()
