import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.tracing import trace_turns
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


async def _trace(site: WebSite, *events: Event, env: Mapping[str, str] | None = None) -> list[str]:
    """Publish the events; the warnings that come from the tracer."""
    bus, warnings = EventBus(), list[str]()
    settings = Settings(database=Path("none.db"), otel_endpoint=site.url(""))
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
    (body,) = site.posted
    assert _TEXT.encode() not in body
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

    assert {name: span["status"] for name, span in _spans(site.posted[0]).items()} == {
        "invoke_agent graph-agent": {"code": 2},
        "chat tiny": {"code": 2},
    }


async def test_a_collector_that_refuses_is_a_warning_and_no_more() -> None:
    with WebSite({}, {"/v1/traces": Answer(status=401)}) as site:
        warnings = await _trace(site, TurnStarted("go"), TurnEnded("done"))

    assert warnings == [f"A trace could not be sent to {site.url('/v1/traces')} (otel_endpoint): it answered 401"]


@pytest.mark.parametrize("has_collector", [True, False])
def test_a_run_sends_its_turn_only_to_a_collector_that_the_user_named(tmp_path: Path, has_collector: bool) -> None:
    replies = [TC("c1", "ls", {"path": "."}), TXT("all done")]
    with WebSite({}, {"/v1/traces": Answer()}) as site, FakeOpenAI(replies) as server:
        settings = f'otel_endpoint = "{site.url("")}"\n' if has_collector else ""
        done = Command(tmp_path, server.base_url, settings=settings)("run", "look around")

    assert (done.returncode, done.stdout) == (0, "all done\n")
    names = [list(_spans(body)) for body in site.posted]
    spans = ["chat fake", "execute_tool ls", "invoke_agent graph-agent"]
    assert names == ([spans] if has_collector else [])
