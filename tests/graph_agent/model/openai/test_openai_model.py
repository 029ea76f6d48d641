import asyncio
import json
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import SecretStr

from graph_agent.config.settings import ModelSettings
from graph_agent.errors import ConfigError, ModelError
from graph_agent.model.openai.capabilities import CapabilityStore
from graph_agent.model.openai.endpoint import ModelOptions, OpenAIModel
from graph_agent.ports import Delta, ModelRequest
from tests.fakes.openai_server import CUT, DELAY, ERR, SSE, TC, TCS, TXT, FakeOpenAI, Reply

KEY = "sk-test-SECRET-9"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("read_file", "bash")
]
HELLO: list[BaseMessage] = [HumanMessage("hi")]


class Asking:
    """One model on one server; waits are noted instead of waited for."""

    def __init__(self, server: FakeOpenAI, learned: Path | None = None, **settings: Any) -> None:
        self.waits: list[float] = []
        self.shown: list[Delta] = []
        options = {"base_url": server.base_url, "api_key": SecretStr(KEY), **settings}
        self.model = OpenAIModel(
            ModelSettings(**options), "m", ModelOptions(CapabilityStore(learned), sleep=self._note)
        )

    async def _note(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def reply(self, *, messages: Sequence[BaseMessage] = HELLO, times: int = 1) -> AIMessage:
        try:
            for _ in range(times):
                reply = await self.model.reply(ModelRequest(messages, TOOLS), self.shown.append)
            return reply
        finally:
            await self.model.close()

    async def error(self) -> str:
        with pytest.raises(ModelError) as caught:
            await self.reply()
        return str(caught.value)

    def texts(self, kind: str) -> str:
        return "".join(delta.text for delta in self.shown if delta.kind == kind)


def calls(reply: AIMessage) -> list[tuple[str, dict[str, Any], str | None]]:
    return [(call["name"], call["args"], call["id"]) for call in reply.tool_calls]


@pytest.mark.parametrize("stream", ["on", "off"])
async def test_text_and_calls_arrive_with_their_usage_streamed_and_whole(stream: str) -> None:
    called = TCS(("c1", "read_file", {"a": 1}), ("c2", "bash", ""), text="look")
    with FakeOpenAI([TXT("hello"), called]) as server:
        asking, calling = Asking(server, stream=stream), Asking(server, stream=stream)
        reply, call = await asking.reply(), await calling.reply()

    assert (reply.text, asking.texts("text")) == ("hello", "hello")
    assert reply.usage_metadata == {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    assert reply.response_metadata == {"model_name": "m", "finish_reason": "stop"}
    assert [body["stream"] for body in server.bodies] == [stream == "on"] * 2
    assert (call.text, calls(call)) == ("look", [("read_file", {"a": 1}, "c1"), ("bash", {}, "c2")])
    pieces = [delta for delta in calling.shown if delta.kind == "tool_call"]
    assert "".join(delta.text for delta in pieces if delta.index == 0) == '{"a": 1}'
    assert {(delta.index, delta.tool_name) for delta in pieces} == {(0, "read_file"), (1, "bash")}


LIST = "the arguments are a list, not a JSON object; send one JSON object"
CUT_OFF = "the reply was cut off by the model's output limit before this call was complete; "


@pytest.mark.parametrize(
    ("sent", "called", "unusable"),
    [
        (Reply(calls=(("c1", "read_file", {"a": 1}),)), [("read_file", {"a": 1}, "c1")], {}),
        (TCS(("c1", "bash", "{}"), ("c2", "bash", "[1]")), [("bash", {}, "c1"), ("bash", {}, "c2")], {"1": LIST}),
        (
            TCS(("c1", "bash", {"a": 1}), ("c2", "bash", {"b": 2}), finish="length"),
            [("bash", {"a": 1}, "c1"), ("bash", {}, "c2")],
            {"1": f"{CUT_OFF}send it again, in smaller parts"},
        ),
        (
            TCS(("1", " Bash\n", "{}"), ("2", "search files!", "{}"), ("3", "", "{}")),
            [("bash", {}, "1"), ("search_files_", {}, "2"), ("unnamed", {}, "3")],
            {},
        ),
    ],
    ids=["arguments that are an object", "unusable arguments", "truncated", "names"],
)
async def test_calls_are_taken_by_position_with_what_is_wrong_with_them(
    sent: Reply, called: list[Any], unusable: dict[str, str]
) -> None:
    with FakeOpenAI([sent]) as server:
        reply = await Asking(server, stream="on" if sent.finish else "off").reply()

    assert calls(reply) == called
    assert reply.response_metadata.get("unusable_arguments", {}) == unusable


async def test_thinking_in_tags_or_in_a_field_of_its_own_is_shown_as_reasoning_only() -> None:
    extra = {"google": {"thought_signature": "s"}}
    call = {"index": 0, "id": "c1", "function": {"name": "bash", "arguments": "{}"}, "extra_content": extra}
    chunks = [{"reasoning_content": "hm "}, {"content": "<think>"}, {"content": "plan"}, {"content": "</think>"}]
    with FakeOpenAI([SSE([*chunks, {"t": [call]}], finish="tool_calls")]) as server:
        asking = Asking(server)
        reply = await asking.reply()

    assert (reply.text, calls(reply)) == ("", [("bash", {}, "c1")])
    assert (asking.texts("reasoning"), asking.texts("text")) == ("hm plan", "")
    assert (reply.response_metadata["reasoning"], reply.response_metadata["extra_content"]) == (
        "hm plan",
        {"0": extra},
    )


ODD_CHUNKS = [
    'RAW {"id":"x","object":"chat.completion.chunk","choices":[]}',
    {"role": "assistant", "content": "hel"},
    {"content": "lo"},
    'RAW {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
    'RAW {"choices":[],"usage":null}',
    'RAW {"choices":[]}',
]


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (SSE(ODD_CHUNKS), "hello"),
        (SSE(ODD_CHUNKS, done=False), "hello"),
        (SSE([{"content": [{"type": "text", "text": "a\u2028b"}]}]), "a\u2028b"),
        (SSE([f"RAW {json.dumps(TXT('hello').completion('m'))}"]), "hello"),
        (TXT("hello", linger_s=9.0), "hello"),
        (TXT("hello", linger_s=9.0, done=False), "hello"),
    ],
    ids=[
        "no choices",
        "no end mark",
        "parts, no finish reason",
        "a whole answer",
        "open after the end",
        "open, no mark",
    ],
)
async def test_a_complete_reply_is_taken_however_its_stream_is_framed(sent: Reply, text: str) -> None:
    with FakeOpenAI([sent]) as server:
        asking = Asking(server, timeout_s=0.3)
        began = time.monotonic()
        reply = await asking.reply()

    assert (reply.text, len(server.requests), asking.waits) == (text, 1, [])
    assert time.monotonic() - began < 4


PARTIAL = {"index": 0, "id": "c1", "function": {"name": "bash", "arguments": '{"command": "par'}}


@pytest.mark.parametrize(
    ("broken", "settings", "words"),
    [
        (CUT(SSE([{"content": "half"}, {"t": [PARTIAL]}])), {"stream": "on"}, "was cut off"),
        (CUT(TXT("half")), {"stream": "off"}, "was cut off"),
        (SSE([{"content": "half"}], done=False), {}, "the connection closed in the middle"),
        (
            SSE([{"content": "ha"}, 'RAW {"error": {"message": "overloaded", "code": 503}}']),
            {},
            "cannot serve the request now (503: overloaded [503])",
        ),
        (ERR(500, "stream error: connection reset upstream"), {}, "cannot serve the request now (500"),
        (DELAY(5, TXT("late")), {"timeout_s": 0.2}, "did not answer in time"),
        (
            SSE([{"content": "half"}, *["RAW \n: ping\n\n"] * 99], pace_s=0.1),
            {"timeout_s": 0.4},
            "sent no part of a reply for 0.4 s",
        ),
    ],
    ids=["cut", "cut whole", "no end", "error within", "an error about a stream", "silent", "only pings"],
)
async def test_a_broken_reply_is_asked_for_again_and_nothing_of_it_is_kept(
    broken: Reply, settings: dict[str, Any], words: str
) -> None:
    with FakeOpenAI([broken, TC("c1", "bash", {"command": "whole"})], strict=True) as server:
        asking = Asking(server, **settings)
        began = time.monotonic()
        reply = await asking.reply()

    assert (reply.text, calls(reply)) == ("", [("bash", {"command": "whole"}, "c1")])
    assert (asking.texts("retry").count("Waiting"), words in asking.texts("retry")) == (1, True)
    assert server.bodies[0] == server.bodies[1]
    assert time.monotonic() - began < 4


async def test_the_wait_a_busy_server_asks_for_is_kept_and_announced() -> None:
    slow = ERR(429, "slow down", {"Retry-After": "1"})
    with FakeOpenAI([slow, slow, TXT("ok")]) as server:
        asking = Asking(server)
        reply = await asking.reply()

    assert (reply.text, [1.0 <= wait < 1.3 for wait in asking.waits]) == ("ok", [True, True])
    assert asking.texts("retry").startswith(
        f"{server.base_url} cannot serve the request now (429: slow down). Waiting 1."
    )


@pytest.mark.parametrize(
    ("sent", "requests", "message"),
    [
        (ERR(503, "down"), 7, "{url} cannot serve the request now (503: down). Gave up after 7 tries."),
        (
            ERR(429, "slow", {"Retry-After": "3600"}),
            1,
            "{url} cannot serve the request now (429: slow). It asks for a wait of 3600 s: try again later.",
        ),
        (TXT(" \n"), 4, "The model returned an empty reply (finish reason: stop). Gave up after 4 tries."),
        *(
            (
                Reply(status=203, body=body),
                4,
                f"{{url}} answered without a message ({why}). Gave up after 4 tries.",
            )
            for body, why in (("{}", "it has no choices"), ("", "its body is empty"))
        ),
        (
            Reply(status=203, body="<html>log in</html>"),
            1,
            (
                "{url} does not speak the OpenAI protocol (it answered with a web page): check "
                "GRAPH_AGENT_BASE_URL, which usually ends in /v1."
            ),
        ),
    ],
    ids=["busy", "too long a wait", "empty", "an empty object", "nothing", "a web page"],
)
async def test_a_model_that_does_not_answer_is_given_up(sent: Reply, requests: int, message: str) -> None:
    with FakeOpenAI(after=sent) as server:
        asking = Asking(server)
        error = await asking.error()

    assert error == message.format(url=server.base_url)
    assert (len(server.requests), len(asking.waits)) == (requests, requests - 1)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (
            401,
            {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}},
            "OPENAI_API_KEY",
        ),
        (403, "no", "OPENAI_API_KEY"),
        (404, "no such model", "GRAPH_AGENT_MODEL"),
        (402, "pay", "no quota left"),
        (429, {"error": {"message": "You exceeded it", "code": "insufficient_quota"}}, "no quota left"),
        (400, {"error": {"code": "context_length_exceeded", "message": "maximum is 8192"}}, "too long"),
        (400, "bad request", "rejected the request (400: bad request)"),
        (
            400,
            {"error": {"code": "content_filter", "message": "The response was filtered due to the prompt"}},
            "rejected the request (400). Rephrase your message.",
        ),
    ],
)
async def test_final_errors_end_at_once_in_one_line_without_a_key(status: int, body: Any, words: str) -> None:
    with FakeOpenAI(after=ERR(status, body)) as server:
        message = await Asking(server, headers={"X-Key": SecretStr("hidden-header")}).error()

    assert len(server.requests) == 1
    assert (words in message, server.base_url in message or "too long" in message) == (True, True)
    assert ("SECRET" in message, "\n" in message) == (False, False)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].headers["x-key"] == "hidden-header"


async def test_a_server_that_requires_a_key_and_gets_none_is_named() -> None:
    with FakeOpenAI(after=ERR(401, "who are you")) as server:
        message = await Asking(server, api_key=None).error()

    assert message == f"{server.base_url} requires a key (401: who are you): set OPENAI_API_KEY."


async def test_a_refused_connection_is_tried_three_times_and_the_setting_is_named() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    with FakeOpenAI() as server:
        asking = Asking(server, base_url=url)
        message = await asking.error()

    assert message.startswith(f"Cannot connect to {url} (")
    assert message.endswith("is GRAPH_AGENT_BASE_URL right? Gave up after 3 tries.")
    assert sum(asking.waits) < 5


HISTORY: list[BaseMessage] = [
    SystemMessage("be kind"),
    HumanMessage("look \ud800"),
    AIMessage("", tool_calls=[{"name": "bash", "args": {"b": "é", "a": [1]}, "id": "c1"}]),
    ToolMessage("done", tool_call_id="c1", name="bash", status="error"),
    AIMessage("well"),
    HumanMessage("and?"),
]


async def test_a_history_is_sent_valid_and_byte_identical_each_time() -> None:
    with FakeOpenAI([TXT("ok"), TXT("ok")], strict=True) as server:
        await Asking(server, extra_body={"top_k": 3}).reply(messages=HISTORY, times=2)

    function = {"name": "bash", "arguments": '{"b": "é", "a": [1]}'}
    call = {"type": "function", "id": "c1", "function": function}
    assert server.faults == []
    assert (
        server.bodies
        == [
            {
                "model": "m",
                "stream": True,
                "stream_options": {"include_usage": True},
                "tools": TOOLS,
                "top_k": 3,
                "messages": [
                    {"role": "system", "content": "be kind"},
                    {"role": "user", "content": "look \ufffd"},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c1", "content": "done"},
                    {"role": "assistant", "content": "well"},
                    {"role": "user", "content": "and?"},
                ],
            }
        ]
        * 2
    )


@pytest.mark.parametrize(
    ("settings", "sent"),
    [({}, None), ({"effort": "high"}, "high"), ({"effort": "low", "extra_body": {"reasoning_effort": "x"}}, "x")],
)
async def test_the_reasoning_effort_is_sent_if_it_is_set(settings: dict[str, Any], sent: str | None) -> None:
    with FakeOpenAI([TXT("ok")], strict=True) as server:
        await Asking(server, **settings).reply()

    assert server.bodies[0].get("reasoning_effort") == sent


async def test_an_endpoint_that_cannot_stream_is_learned_and_remembered() -> None:
    with FakeOpenAI([TXT("one"), TXT("two"), TXT("off")], refuse_stream=True) as server:
        asking = Asking(server)
        reply = await asking.reply(times=2)
        off = await Asking(server, stream="off").reply()

    assert (reply.text, off.text, asking.texts("retry")) == ("two", "off", "")
    assert [body["stream"] for body in server.bodies] == [True, False, False, False]


@pytest.mark.parametrize(
    ("refusal", "field", "seen"),
    [
        ("unknown field stream_options", "stream_options", [{"include_usage": True}, None, None]),
        ("content must be a string", "content", [None, "", ""]),
    ],
)
async def test_an_endpoint_that_rejects_a_field_is_asked_without_it_from_then_on(
    refusal: str, field: str, seen: list[Any]
) -> None:
    with FakeOpenAI([ERR(400, refusal), TXT("ok"), TXT("ok")]) as server:
        await Asking(server).reply(messages=HISTORY, times=2)

    places = server.bodies if field == "stream_options" else [body["messages"][2] for body in server.bodies]
    assert [place.get(field) for place in places] == seen


def test_the_label_names_model_and_host_and_no_credentials() -> None:
    assert OpenAIModel(ModelSettings(base_url="http://me:pw@localhost:1/v1"), "qwen").label == "qwen @ localhost:1"


async def test_a_proxy_variable_of_another_library_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_PROXY", "http://127.0.0.1:9")
    with FakeOpenAI([TXT("ok")]) as server:
        reply = await Asking(server).reply()

    assert reply.text == "ok"


def test_certificates_that_cannot_be_read_are_a_wrong_setting(tmp_path: Path) -> None:
    settings = ModelSettings(base_url="https://localhost/v1", ca_file=tmp_path / "none.pem")

    with pytest.raises(ConfigError, match=r"model\.ca_file = .*none\.pem' cannot be read as certificates"):
        OpenAIModel(settings, "m")


async def test_a_request_that_is_cancelled_ends_at_once_and_shows_no_more() -> None:
    shown: list[Delta] = []
    has_begun = asyncio.Event()

    def show(delta: Delta) -> None:
        shown.append(delta)
        has_begun.set()

    with FakeOpenAI([TXT("hello", pace_s=0.2), TXT("next")]) as server:
        asking = Asking(server)
        running = asyncio.create_task(asking.model.reply(ModelRequest(HELLO, TOOLS), show))
        await has_begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        reply = await asking.reply()

    assert (shown, reply.text) == ([Delta("text", "he")], "next")


NO_TOOLS = ERR(400, {"error": {"message": "registry.ollama.ai/library/m does not support tools"}})
AS_TEXT = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'


async def test_a_model_without_functions_gets_them_as_text_in_this_process_and_the_next(tmp_path: Path) -> None:
    learned = tmp_path / "learned.json"
    with FakeOpenAI([NO_TOOLS, TXT(f"I look.\n{AS_TEXT}"), TXT("done")], strict=True) as server:
        asking = Asking(server, learned)
        reply = await asking.reply()
        later = await Asking(server, learned).reply(messages=HISTORY)

    assert (reply.text, calls(reply), later.text) == ("I look.", [("bash", {"command": "ls"}, None)], "done")
    assert asking.texts("text").strip() == "I look."
    assert [("tools" in body, len(body["messages"])) for body in server.bodies] == [
        (True, 1),
        (False, 2),
        (False, 6),
    ]
    roles = [message["role"] for message in server.bodies[2]["messages"]]
    assert roles == ["system", *["user", "assistant"] * 2, "user"]


async def test_a_corrected_model_uses_function_calling() -> None:
    with FakeOpenAI([TXT(AS_TEXT), TC("c1", "bash", {"command": "ls"})], strict=True) as server:
        asking = Asking(server)
        reply = await asking.reply()

    assert calls(reply) == [("bash", {"command": "ls"}, "c1")]
    assert reply.usage_metadata == {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}
    assert [delta.text for delta in asking.shown if delta.kind in ("retry", "note")] == [
        "The model wrote the call of bash as text instead of making it. Asking again (1 of 2)."
    ]


def thought(text: str = "hm") -> list[BaseMessage]:
    """A history in which the model thought before it called, and got a signature with its call."""
    kept = {"reasoning": text, "extra_content": {"0": {"google": {"thought_signature": "s"}}}}
    return [
        HumanMessage("look"),
        AIMessage("", tool_calls=[{"name": "bash", "args": {}, "id": "c1"}], response_metadata=kept),
        ToolMessage("x", tool_call_id="c1"),
    ]


@pytest.mark.parametrize(
    ("refusal", "field", "value"),
    [
        ("The reasoning_content in the thinking mode must be passed back to the API.", "reasoning_content", "hm"),
        ("Function call is missing a thought_signature in functionCall parts.", "extra_content", {"google": {}}),
    ],
)
async def test_extra_fields_of_a_reply_are_sent_back_where_the_endpoint_requires_them(
    refusal: str, field: str, value: Any, tmp_path: Path
) -> None:
    learned = tmp_path / "learned.json"
    with FakeOpenAI([ERR(400, refusal), TXT("ok"), TXT("ok")]) as server:
        for _ in range(2):
            await Asking(server, learned).reply(messages=thought())

    sent = [body["messages"][1] for body in server.bodies]
    places = sent if field == "reasoning_content" else [message["tool_calls"][0] for message in sent]
    kept = {"google": {"thought_signature": "s"}} if isinstance(value, dict) else value
    assert [place.get(field) for place in places] == [None, kept, kept]


async def test_thinking_is_sent_back_always_or_never_where_that_is_set() -> None:
    with FakeOpenAI([TXT("ok")], after=ERR(400, "missing reasoning_content")) as server:
        await Asking(server, send_reasoning="always").reply(messages=thought())
        with pytest.raises(ModelError, match="missing reasoning_content"):
            await Asking(server, send_reasoning="never").reply(messages=thought())

    assert [body["messages"][1].get("reasoning_content") for body in server.bodies[:2]] == ["hm", None]
