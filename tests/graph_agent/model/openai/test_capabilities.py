import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.model.openai.capabilities import Capabilities, CapabilityStore, apply_settings, revise_capabilities
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
    assert learned("bad request") is None
    assert learned("bad request", request=CALLED) == Capabilities(null_content=False)


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


def test_capabilities_are_stored_by_address_and_model(tmp_path: Path) -> None:
    path = tmp_path / "data" / "learned.json"
    CapabilityStore(path).save(URL, "m", WHOLE_TEXT)
    later = CapabilityStore(path)

    assert (later.load(URL, "m"), later.load(URL, "other"), later.load("http://x/v1", "m")) == (
        WHOLE_TEXT,
        Capabilities(),
        Capabilities(),
    )
    assert "secret" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_default_capabilities_are_not_stored(tmp_path: Path) -> None:
    learned = CapabilityStore(tmp_path / "learned.json")
    learned.save(URL, "m", WHOLE_TEXT)
    learned.save(URL, "m", Capabilities())

    assert (tmp_path / "learned.json").read_text() == "{}\n"


def test_a_file_that_cannot_be_used_is_as_none(tmp_path: Path) -> None:
    for number, text in enumerate(["", "{", "[]", '{"m @ http://me@x/v1": 3}', "[" * 100_000]):
        path = tmp_path / str(number)
        path.write_text(text)
        assert CapabilityStore(path).load("http://x/v1", "m") == Capabilities()
    os.mkfifo(tmp_path / "pipe")
    assert CapabilityStore(tmp_path / "pipe").load("http://x/v1", "m") == Capabilities()


def test_nothing_is_written_without_a_place_and_a_place_that_takes_nothing_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    CapabilityStore().save(URL, "m", WHOLE_TEXT)
    CapabilityStore(tmp_path / "file" / "learned.json").save(URL, "m", WHOLE_TEXT)

    assert CapabilityStore().load(URL, "m") == Capabilities()


def test_a_value_that_is_no_truth_value_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    path.write_text('{"m @ http://x/v1": {"streams": "no", "null_content": false, "newer": true}}')

    assert CapabilityStore(path).load("http://x/v1", "m") == Capabilities(null_content=False)
