from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.model.wire import Dialect, open_wire
from tests.fakes.openai_server import SSE, TXT, FakeOpenAI

CALLED = [
    HumanMessage("hi"),
    AIMessage("", tool_calls=[{"name": "ls", "args": {"path": "a\ud800"}, "id": "c1"}]),
    ToolMessage("out", tool_call_id="c1"),
]


def test_a_body_has_only_what_the_dialect_takes() -> None:
    wire = open_wire(ModelSettings(base_url="http://localhost:1/v1"), "m")

    streamed = wire.request_body([HumanMessage("hi")], [], Dialect())
    plain = wire.request_body(CALLED, [], Dialect(streams=False, takes_null=False))

    assert streamed == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hi"}],
    }
    function = {"name": "ls", "arguments": '{"path": "a\ufffd"}'}
    call = {"type": "function", "id": "c1", "function": function}
    assert plain == {
        "model": "m",
        "stream": False,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "out"},
        ],
    }


async def test_an_answer_is_handed_on_event_by_event_without_what_keeps_it_alive() -> None:
    chunks = ['RAW {"a": "\u2028"}', "RAW \n: keep-alive\n\nevent: ping\ndata:", 'RAW {"b": 2}']
    with FakeOpenAI([SSE(chunks)]) as server:
        wire = open_wire(ModelSettings(base_url=server.base_url), "m")
        body = wire.request_body([HumanMessage("hi")], [], Dialect())
        payloads = [payload async for payload in wire.payloads(body)]
        await wire.close()

    assert payloads == ['{"a": "\u2028"}', '{"b": 2}', "[DONE]"]


async def test_an_answer_that_is_not_streamed_is_handed_on_whole() -> None:
    with FakeOpenAI([TXT("hello")]) as server:
        wire = open_wire(ModelSettings(base_url=server.base_url), "m")
        body = wire.request_body([HumanMessage("hi")], [], Dialect(streams=False))
        payloads = [payload async for payload in wire.payloads(body)]
        await wire.close()

    assert [payload.startswith('{"id": "chatcmpl-fake"') for payload in payloads] == [True]
