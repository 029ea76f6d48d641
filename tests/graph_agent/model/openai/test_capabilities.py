from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.model.openai.capabilities import Capabilities, configured, relearned
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
PROMPT = Capabilities(calls_functions=False)


def learned(said: str, status: int = 400, *, request: ModelRequest = PLAIN, **settings: Any) -> Capabilities | None:
    failure = Failure("final", said, status, said.lower())
    return relearned(Capabilities(), failure, request, ModelSettings(**settings))


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
def test_a_refusal_of_functions_turns_to_calls_in_the_text(status: int, said: str) -> None:
    assert learned(said, status) == PROMPT


@pytest.mark.parametrize(
    "said",
    [
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "Invalid schema for function 'x': bad",
        "Invalid 'tools[0].function.name': string does not match",
        "Unknown parameter: 'tools[0].function.strict'",
        "Cannot use tools here",
        "tool_call_id not found",
        "max 128 tools supported",
    ],
)
def test_what_speaks_of_one_bad_tool_or_message_is_no_refusal_of_functions(said: str) -> None:
    assert learned(said) is None


@pytest.mark.parametrize(
    ("said", "dialect"),
    [
        ("Unknown field stream_options", Capabilities(counts_streams=False)),
        ("Cannot use tools with stream", Capabilities(streams=False)),
        (
            "tool calling is not supported when streaming is on, streaming not supported",
            Capabilities(streams=False),
        ),
        (
            "Missing `reasoning_content` field in the assistant message at message index 2.",
            Capabilities(wants_reasoning=True),
        ),
        (
            "The reasoning_content in the thinking mode must be passed back to the API.",
            Capabilities(wants_reasoning=True),
        ),
        (
            "Function call is missing a thought_signature in functionCall parts.",
            Capabilities(wants_signatures=True),
        ),
    ],
)
def test_a_refusal_says_what_the_endpoint_takes(said: str, dialect: Capabilities) -> None:
    assert learned(said) == dialect


def test_what_the_settings_decide_is_not_learned() -> None:
    assert learned("this model does not support tools", tool_protocol="native") is None
    assert learned("streaming is not supported", stream="on") is None
    assert learned("missing reasoning_content", send_reasoning="never") is None
    assert learned("this model does not support tools", 429) is None
    assert learned("this model does not support tools", request=ModelRequest(PLAIN.messages, [])) is None


def test_null_content_is_suspected_where_there_was_some_and_nothing_else_is_said() -> None:
    assert learned("bad request") is None
    assert learned("bad request", request=CALLED) == Capabilities(takes_null=False)


def test_the_settings_win_over_what_was_learned() -> None:
    known = Capabilities(streams=False, calls_functions=False, wants_reasoning=True)
    options = {"stream": "on", "tool_protocol": "native", "send_reasoning": "never"}

    assert configured(ModelSettings(), known) == known
    assert configured(ModelSettings.model_validate(options), known) == Capabilities()
    assert configured(ModelSettings(tool_protocol="prompt", stream="off"), Capabilities()) == Capabilities(
        streams=False, calls_functions=False
    )
