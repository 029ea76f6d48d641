import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.model.openai.capabilities import (
    Capabilities,
    CapabilityStore,
    Learned,
    apply_settings,
    revise_capabilities,
    suspect_null_content,
)
from graph_agent.model.openai.errors import Failure
from graph_agent.ports import ModelRequest

PLAIN = ModelRequest([HumanMessage("hi")], [{"type": "function", "function": {"name": "ls"}}])
CALLED = ModelRequest(
    [
        HumanMessage("hi"),
        AIMessage("", tool_calls=[{"name": "ls", "args": {}, "id": "c"}]),
        ToolMessage("", tool_call_id="c"),
    ],
    PLAIN.tools,
)
PROMPT = Capabilities(function_calling=False)


def learned(said: str, status: int = 400, *, request: ModelRequest = PLAIN, **settings: Any) -> Capabilities | None:
    failure = Failure("final", said, status, said.lower())
    return revise_capabilities(Capabilities(), failure, request, ModelSettings(**settings))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "registry.ollama.ai/library/gemma:latest does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit"),
        (500, "tools param requires --jinja flag"),
        (400, "`tool calling` is not supported with this model"),
        (400, "Function calling is not enabled for models/gemma-3-27b-it"),
        (400, "Unrecognized request argument supplied: tools"),
        (422, "Extra inputs are not permitted, field: 'tools'"),
        (501, "functions are not supported"),
    ],
)
def test_rejected_functions_switch_to_calls_as_text(status: int, said: str) -> None:
    assert learned(said, status) == PROMPT


@pytest.mark.parametrize(
    "said",
    [
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "Invalid schema for function 'x': bad", "Invalid 'tools[0].function.name': string does not match",
        "Unknown parameter: 'tools[0].function.strict'", "Cannot use tools here", "tool_call_id not found",
        "max 128 tools supported",
    ],
)  # fmt: skip
def test_an_error_about_one_tool_or_message_does_not_disable_functions(said: str) -> None:
    assert learned(said) is None


@pytest.mark.parametrize(
    ("said", "dialect"),
    [
        ("Unknown field stream_options", Capabilities(stream_usage=False)),
        ("Cannot use tools with stream", Capabilities(streaming=False)),
        (
            "tool calling is not supported when streaming is on, streaming not supported",
            Capabilities(streaming=False),
        ),
        (
            "Missing `reasoning_content` field in the assistant message at message index 2.",
            Capabilities(needs_reasoning=True),
        ),
        (
            "The reasoning_content in the thinking mode must be passed back to the API.",
            Capabilities(needs_reasoning=True),
        ),
        (
            "Function call is missing a thought_signature in functionCall parts.",
            Capabilities(needs_signatures=True),
        ),
    ],
)
def test_an_error_reveals_a_capability(said: str, dialect: Capabilities) -> None:
    assert learned(said) == dialect


def test_capabilities_fixed_by_settings_are_not_learned() -> None:
    assert learned("this model does not support tools", tool_protocol="native") is None
    assert learned("streaming is not supported", stream="on") is None
    assert learned("missing reasoning_content", send_reasoning="never") is None
    assert learned("this model does not support tools", 429) is None
    assert learned("this model does not support tools", request=ModelRequest(PLAIN.messages, [])) is None


def test_null_content_is_suspected_where_nothing_else_explains_the_error() -> None:
    failure = Failure("final", "bad request", 400, "bad request")
    plain, called = (suspect_null_content(Capabilities(), failure, request) for request in (PLAIN, CALLED))
    assert (plain, called) == (None, Capabilities(null_content=False))
    assert suspect_null_content(Capabilities(null_content=False), failure, CALLED) is None


def test_settings_override_learned_capabilities() -> None:
    known = Capabilities(streaming=False, function_calling=False, needs_reasoning=True)
    options = {"stream": "on", "tool_protocol": "native", "send_reasoning": "never"}

    assert apply_settings(ModelSettings(), known) == known
    assert apply_settings(ModelSettings.model_validate(options), known) == Capabilities()
    assert apply_settings(ModelSettings(tool_protocol="prompt", stream="off"), Capabilities()) == Capabilities(
        streaming=False, function_calling=False
    )


URL = "http://me:secret@localhost:1/v1"
WHOLE_TEXT = Capabilities(function_calling=False, streaming=False)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_what_is_learned_is_stored_by_address_and_model_and_holds_for_a_day(tmp_path: Path) -> None:
    path = tmp_path / "data" / "learned.json"
    store = CapabilityStore(path, lambda: NOW)
    store.save(URL, "m", {"streaming": False})
    CapabilityStore(path, lambda: NOW + timedelta(hours=10)).save(URL, "m", {"function_calling": False})

    def later(hours: float) -> Capabilities:
        return CapabilityStore(path, lambda: NOW + timedelta(hours=hours)).load(URL, "m")

    assert (store.load(URL, "other"), store.load("http://x/v1", "m")) == (Capabilities(), Capabilities())
    assert [later(10), later(25), later(35)] == [WHOLE_TEXT, Capabilities(function_calling=False), Capabilities()]
    assert "secret" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_was_learned_can_be_forgotten(tmp_path: Path) -> None:
    store = CapabilityStore(tmp_path / "learned.json", lambda: NOW)
    store.save(URL, "m", {"images": False})
    assert store.learned(URL, "m") == (Learned("images", value=False, at=NOW),)
    assert [store.forget(URL, "m"), store.forget(URL, "m")] == [1, 0]
    assert (store.load(URL, "m"), (tmp_path / "learned.json").read_text()) == (Capabilities(), "{}\n")


def test_entries_without_a_date_or_of_another_type_are_determined_again(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    entries: list[Any] = [
        {"images": False},
        {"images": {"value": "no", "at": NOW.isoformat()}},
        {"images": {"value": False, "at": "soon"}},
        {"images": {"value": False}},
        {"sight": {"value": False, "at": NOW.isoformat()}},
        {"images": {"value": False, "at": "9999-12-31T00:00:00+00:00"}},
        [],
    ]
    for entry in entries:
        path.write_text(json.dumps({"m @ http://me@localhost:1/v1": entry, "m @ http://localhost:1/v1": entry}))
        assert CapabilityStore(path, lambda: NOW).load(URL, "m") == Capabilities(), entry


def test_a_file_that_cannot_be_used_is_as_none(tmp_path: Path) -> None:
    for number, text in enumerate(["", "{", "[]", '{"m @ http://me@x/v1": 3}', "[" * 100_000]):
        path = tmp_path / str(number)
        path.write_text(text)
        assert CapabilityStore(path).load("http://x/v1", "m") == Capabilities()
    os.mkfifo(tmp_path / "pipe")
    assert CapabilityStore(tmp_path / "pipe").load("http://x/v1", "m") == Capabilities()


def test_nothing_is_written_without_a_place_and_a_place_that_takes_nothing_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    CapabilityStore().save(URL, "m", {"images": False})
    CapabilityStore(tmp_path / "file" / "learned.json").save(URL, "m", {"images": False})

    assert CapabilityStore().load(URL, "m") == Capabilities()
