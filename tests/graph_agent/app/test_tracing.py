import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app import tracing
from graph_agent.app.tracing import Collector, trace_turns
from graph_agent.config.settings import Settings
from graph_agent.events import (
    Compacted,
    Event,
    EventBus,
    ModelMessage,
    SessionOpened,
    StepStarted,
    TextDelta,
    ToolCallDecided,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    TurnStarted,
    WarningIssued,
)
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.otlp_receiver import otlp_receiver
from tests.fakes.web_site import Answer, WebSite
from tests.scenarios.command import Command

_USAGE = {"input_tokens": 90, "output_tokens": 7, "total_tokens": 97}
_TEXT = "do not send this"


def _values(attributes: list[dict[str, Any]]) -> dict[str, str | int]:
    found = {item["key"]: item["value"] for item in attributes}
    return {
        key: int(value["intValue"]) if "intValue" in value else value["stringValue"] for key, value in found.items()
    }


def _spans(body: bytes) -> dict[str, dict[str, Any]]:
    """The spans of a request, by name, with their attributes as plain values."""
    (resource,) = json.loads(body)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    return {span["name"]: {**span, "attributes": _values(span["attributes"])} for span in scope["spans"]}


def _traces(site: WebSite) -> list[bytes]:
    return [body for (path, _), body in zip(site.asked, site.posted, strict=True) if path.endswith("/v1/traces")]


def _metrics(site: WebSite) -> dict[str, dict[str, float]]:
    """The values of each metric by the last of its attributes, added up over all requests."""
    found: dict[str, dict[str, float]] = {}
    for (path, _), body in zip(site.asked, site.posted, strict=True):
        if path.endswith("/v1/traces"):
            continue
        (resource,) = json.loads(body)["resourceMetrics"]
        for metric in resource["scopeMetrics"][0]["metrics"]:
            values = found.setdefault(metric["name"], {})
            for point in (metric.get("sum") or metric["gauge"])["dataPoints"]:
                label = "/".join(map(str, _values(point["attributes"]).values()))
                values[label] = values.get(label, 0) + float(point.get("asInt", point.get("asDouble")))
    return found


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_CLOSE_S", 30)  # A busy machine takes longer than two seconds.


async def _trace(
    site: WebSite, *events: Event, env: Mapping[str, str] | None = None, endpoint: str | None = ""
) -> list[str]:
    """Publish the events; the warnings that come from the tracer. `endpoint`: the setting, if not the site's."""
    bus, warnings = EventBus(), list[str]()
    settings = Settings(database=Path("none.db"), otel_endpoint=site.url("") if endpoint == "" else endpoint)
    tracer = trace_turns(settings, bus, lambda: "tiny @ 127.0.0.1", env or {})
    assert tracer is not None
    bus.subscribe(lambda _, event: warnings.append(event.text) if isinstance(event, WarningIssued) else None)
    for event in (SessionOpened("t1", "", "/w", "tiny", "default"), *events):
        bus.publish(event)
    await tracer.close()
    return warnings


async def test_a_turn_is_one_trace_with_a_span_for_each_request_and_each_call() -> None:
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc, x-team=a"}
    with WebSite({}, {"/v1/traces": Answer()}) as site:
        warnings = await _trace(
            site,
            TurnStarted(_TEXT),
            Compacted(900, 300, "references"),
            StepStarted(1),
            TextDelta(_TEXT),
            WarningIssued(_TEXT, wait_s=1.5),
            ModelMessage(_TEXT, ("c1", "c2"), dict(_USAGE)),
            ToolCallDecided("c1", "approve", _TEXT),
            ToolCallStarted("c1", "bash", _TEXT),
            ToolCallFinished("c1", "bash", "error", _TEXT, _TEXT, _TEXT),
            ToolCallFinished("c2", "write_file", "cancelled", reason=_TEXT, outcome="rejected"),
            TurnEnded("done", _TEXT, usage=dict(_USAGE)),
            env=env,
        )

    assert warnings == [_TEXT]
    assert (site.headers[0]["authorization"], site.headers[0]["x-team"]) == ("Bearer abc", "a")
    (body,) = _traces(site)
    assert _TEXT.encode() not in b"".join(site.posted)
    spans = _spans(body)
    root = spans["invoke_agent graph-agent"]
    tokens = {"gen_ai.usage.input_tokens": 90, "gen_ai.usage.output_tokens": 7}
    assert root["attributes"] == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "graph-agent",
        "gen_ai.conversation.id": "t1",
        "graph_agent.turn.status": "done",
        **tokens,
    }
    assert [event["name"] for event in root["events"]] == ["compaction", "retry", "decision"]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny", **tokens}
    assert spans["chat tiny"]["attributes"] == chat
    ran, rejected = spans["execute_tool bash"], spans["execute_tool write_file"]
    assert (ran["status"], ran["attributes"]["graph_agent.call.status"]) == ({"code": 2}, "error")
    assert (rejected["status"], rejected["attributes"]["graph_agent.call.outcome"]) == ({}, "rejected")
    assert {span.get("parentSpanId") for span in spans.values()} == {None, root["spanId"]}
    assert len({span["traceId"] for span in spans.values()}) == 1
    assert all(int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) for span in spans.values())


async def test_what_a_failed_turn_leaves_open_ends_with_it_as_failed() -> None:
    with WebSite({}, {"/v1/traces": Answer()}) as site:
        await _trace(site, TurnStarted("go"), StepStarted(1), TurnEnded("model_error", error="down"))

    assert {name: span["status"] for name, span in _spans(_traces(site)[0]).items()} == {
        "invoke_agent graph-agent": {"code": 2},
        "chat tiny": {"code": 2},
    }


async def test_a_collector_that_refuses_is_a_warning_and_no_more() -> None:
    with WebSite({}, {"/v1/traces": Answer(status=401)}) as site:
        warnings = await _trace(site, TurnStarted("go"), TurnEnded("done"))

    assert warnings == [f"A trace could not be sent to {site.url('/v1/traces')} (otel_endpoint): it answered 401"]


@pytest.mark.parametrize(
    "env",
    [
        {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20hidden%0A"},
        {"OTEL_EXPORTER_OTLP_HEADERS": "hidden%20name=hidden"},
        {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=hidden%C3%A9"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://u:hidden/x@h/"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://[::1/hidden"},
    ],
)
async def test_a_warning_about_a_collector_quotes_no_secret(env: Mapping[str, str]) -> None:
    with WebSite({}, {"/v1/traces": Answer()}) as site:
        endpoint = None if "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" in env else site.url("")
        [warning] = await _trace(site, TurnStarted("go"), TurnEnded("done"), env=env, endpoint=endpoint)

    assert warning.startswith("A trace could not be sent to ")
    assert "hidden" not in warning.partition(": ")[2]


@pytest.mark.parametrize(
    ("written", "seconds"), [("2000", 2), ("inf", 3600), ("nan", 5), ("1e300", 3600), ("-1", 5)]
)
def test_the_time_limit_of_a_collector_is_one_that_a_socket_takes(written: str, seconds: float) -> None:
    collector = Collector.chosen("http://h", {"OTEL_EXPORTER_OTLP_TIMEOUT": written})

    assert collector is not None
    assert collector.timeout_s == seconds


def test_a_collector_that_does_not_answer_keeps_no_process_from_ending(tmp_path: Path) -> None:
    with (
        WebSite({}, {"/v1/traces": Answer(delay_s=60)}) as site,
        FakeOpenAI([TXT("all done")]) as server,
    ):
        limit = {"OTEL_EXPORTER_OTLP_TIMEOUT": "60000"}
        settings = f'otel_endpoint = "{site.url("")}"\n'
        started = time.monotonic()
        done = Command(tmp_path, server.base_url, limit, settings).run_cold("run", "go")

    assert (done.returncode, done.stdout) == (0, "all done\n")
    assert "it did not answer within 2 s" in done.stderr
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("has_collector", [True, False])
def test_a_run_sends_its_turn_only_to_a_collector_that_the_user_named(tmp_path: Path, has_collector: bool) -> None:
    replies = [TC("c1", "ls", {"path": "."}), TXT("all done")]
    with WebSite({}, {"/v1/traces": Answer()}) as site, FakeOpenAI(replies) as server:
        settings = f'otel_endpoint = "{site.url("")}"\n' if has_collector else ""
        done = Command(tmp_path, server.base_url, settings=settings)("run", "look around")

    assert (done.returncode, done.stdout) == (0, "all done\n")
    names = [list(_spans(body)) for body in _traces(site)]
    spans = ["chat fake", "execute_tool ls", "invoke_agent graph-agent"]
    assert names == ([spans] if has_collector else [])


async def test_a_turn_is_counted_with_its_tokens_calls_and_what_waits() -> None:
    with WebSite({}, {"/v1/traces": Answer(), "/v1/metrics": Answer()}) as site:
        await _trace(
            site,
            TurnStarted("go"),
            StepStarted(1),
            ModelMessage(_TEXT, ("c1", "c2"), dict(_USAGE)),
            ToolCallStarted("c1", "bash", _TEXT),
            ToolCallFinished("c1", "bash", "success"),
            TurnEnded("awaiting_approval", usage={**_USAGE, "cost": 0.25}, questions=({"kind": "approval"},)),
            TurnStarted(),
            StepStarted(2),
            ModelMessage(_TEXT, (), dict(_USAGE)),
            TurnEnded("done", usage={"input_tokens": 180, "output_tokens": 14, "cost": 0.5}),
        )

    metrics = _metrics(site)
    assert metrics.pop("graph_agent.turn.duration").keys() == {"awaiting_approval", "done"}
    assert metrics == {
        "graph_agent.turns": {"awaiting_approval": 1, "done": 1},
        "gen_ai.client.token.usage": {"input": 180, "output": 14},
        "graph_agent.cost": {"": 0.5},
        "graph_agent.calls": {"bash/success": 1},
        "graph_agent.approvals.waiting": {"": 1},
        "graph_agent.calls.interrupted": {"": 0},
    }


@pytest.mark.parametrize(
    ("variables", "traces", "metrics"),
    [
        ({}, "", ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, "http://c:4318/v1/traces", "http://c:4318/v1/metrics"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/t"}, "http://c/t", ""),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m/x"},
            "http://c/v1/traces",
            "http://m/x",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "none"}, "http://c/v1/traces", ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, "", ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc-host:4317"}, "", ""),
    ],
)
def test_the_standard_variables_choose_the_collector(variables: dict[str, str], traces: str, metrics: str) -> None:
    chosen = Collector.chosen(None, variables)

    assert (chosen.traces_url if chosen else "", chosen.metrics_url if chosen else "") == (traces, metrics)


def test_the_setting_outranks_the_variables_which_name_the_service() -> None:
    names = {"OTEL_SERVICE_NAME": "shop", "OTEL_RESOURCE_ATTRIBUTES": "team=a%20b,service.name=other"}
    chosen = Collector.chosen("http://mine:4318", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", **names})

    assert chosen is not None
    assert (chosen.traces_url, chosen.resource) == (
        "http://mine:4318/v1/traces",
        {"service.name": "shop", "team": "a b"},
    )


def test_a_call_that_is_asked_approved_and_run_in_three_processes_is_one_trace(tmp_path: Path) -> None:
    replies = [TC("c1", "bash", {"command": "touch x"}), TXT("done"), TXT("next")]
    with otlp_receiver(tmp_path) as receiver, FakeOpenAI(replies) as server:
        collector = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SERVICE_NAME": "shop"}
        command = Command(tmp_path, server.base_url, extra_env=collector)
        codes = [
            command("run", "go", "--thread", "t").returncode,
            command("approvals", "approve", "c1").returncode,
            command("run", "--resume", "t").returncode,
            command("run", "again", "--resume", "t").returncode,
        ]
        spans, metrics, refusals = receiver.spans(), receiver.metrics(), receiver.refusals()

    assert (codes, refusals) == ([3, 0, 0, 0], [])
    assert {span["resource"]["service.name"] for span in spans} == {"shop"}
    trace = [span for span in spans if span["traceId"] == spans[0]["traceId"]]
    root, resumed = [span for span in trace if span["name"] == "invoke_agent graph-agent"]
    parents = {span["name"]: span["parentSpanId"] for span in trace if span not in (root, resumed)}
    assert [span["name"] for span in spans if span not in trace] == ["chat fake", "invoke_agent graph-agent"]
    assert ("parentSpanId" in root, resumed["parentSpanId"]) == (False, root["spanId"])
    assert parents == {"chat fake": resumed["spanId"], "execute_tool bash": resumed["spanId"]}
    [ran] = [span for span in trace if span["name"] == "execute_tool bash"]
    assert int(root["endTimeUnixNano"]) <= int(ran["startTimeUnixNano"])
    assert {span["kind"] for span in trace if span["name"] == "chat fake"} == {"SPAN_KIND_CLIENT"}
    called = {key: ran["attributes"][key] for key in ("gen_ai.operation.name", "gen_ai.tool.call.id")}
    assert called == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1"}
    waiting = [one["gauge"]["dataPoints"] for one in metrics if one["name"] == "graph_agent.approvals.waiting"]
    assert [int(points[0].get("asInt", 0)) for points in waiting] == [1, 0, 0]


@pytest.mark.timeout(30)
async def test_a_collector_that_does_not_answer_delays_the_end_by_two_seconds_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "_CLOSE_S", 0.2)
    with WebSite({}, {"/v1/traces": Answer(delay_s=20)}) as site:
        warnings = await _trace(site, TurnStarted("go"), TurnEnded("done"))

    assert [text.rpartition(": ")[2] for text in warnings] == ["it did not answer within 0.2 s"]
