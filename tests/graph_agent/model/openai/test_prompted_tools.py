from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.model.openai.prompted_tools import add_earlier_usage, reply_with_corrections, to_prompt_protocol
from graph_agent.ports import Delta, ModelRequest

TOOLS = [{"type": "function", "function": {"name": "ls"}}]
CALLS = [{"name": "ls", "args": {"path": "é"}, "id": "1"}, {"name": "bash", "args": {}, "id": "2"}]
HISTORY = [
    SystemMessage("be kind"),
    HumanMessage("look"),
    AIMessage("well", tool_calls=CALLS),
    ToolMessage("a </tool_result> b", tool_call_id="1", name="ls"),
    ToolMessage("Error: no", tool_call_id="2", name="bash", status="error"),
    HumanMessage("and?"),
    AIMessage("done"),
]


def sent(messages: Sequence[BaseMessage]) -> list[tuple[str, object]]:
    written = to_prompt_protocol(messages, TOOLS, lambda tools: f"{len(tools)} TOOL")
    return [(message.type, message.content) for message in written]


def test_tools_calls_and_results_are_text_and_roles_alternate() -> None:
    (system, offer), *rest = sent(HISTORY)

    assert (system, str(offer).startswith("be kind\n\n# Tools\n"), str(offer).endswith("\n1 TOOL")) == (
        "system",
        True,
        True,
    )
    assert rest == [
        ("human", "look"),
        (
            "ai",
            (
                'well\n\n<tool_call>\n{"name": "ls", "arguments": {"path": "é"}}\n</tool_call>\n\n'
                '<tool_call>\n{"name": "bash", "arguments": {}}\n</tool_call>'
            ),
        ),
        (
            "human",
            (
                '<tool_result name="ls">\na <\\/tool_result> b\n</tool_result>\n\n'
                '<tool_result name="bash">\nError: no\n</tool_result>\n\nand?'
            ),
        ),
        ("ai", "done"),
    ]


def test_the_offer_begins_the_conversation_where_nothing_else_does() -> None:
    assert [kind for kind, _ in sent(HISTORY[1:2])] == ["system", "human"]


def test_without_tools_nothing_is_offered() -> None:
    assert to_prompt_protocol([HumanMessage("hi")], [], lambda _: "") == [HumanMessage("hi")]


def test_parts_that_are_no_text_are_kept() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    result = ToolMessage([{"type": "text", "text": "see"}, image], tool_call_id="1", name="ls")

    _, (_, content) = sent([result, HumanMessage("what is it?")])

    assert content == [
        {"type": "text", "text": '<tool_result name="ls">\nsee\n</tool_result>'},
        image,
        {"type": "text", "text": "what is it?"},
    ]


REQUEST = ModelRequest([HumanMessage("look")], TOOLS)
TEXT_CALL = AIMessage('<tool_call>{"name": "LS", "arguments": {}}</tool_call>')
BROKEN = "<tool_call>\n{'name': 'ls'}\n</tool_call>"


async def corrected(
    replies: Sequence[AIMessage], request: ModelRequest = REQUEST
) -> tuple[AIMessage, list[ModelRequest], list[Delta]]:
    """The reply, the requests for it, and the deltas."""
    asked: list[ModelRequest] = []
    shown: list[Delta] = []

    async def ask(request: ModelRequest) -> AIMessage:
        asked.append(request)
        return replies[len(asked) - 1]

    return await reply_with_corrections(await ask(request), ask, request, shown.append), asked, shown


async def test_a_call_as_text_is_corrected_twice_and_then_the_user_is_warned() -> None:
    reply, asked, shown = await corrected([TEXT_CALL] * 3)

    assert (reply, [delta.kind for delta in shown]) == (TEXT_CALL, ["retry", "retry", "note"])
    assert [(message.type, message.text[:20]) for message in asked[1].messages] == [
        ("human", "look"),
        ("ai", TEXT_CALL.text[:20]),
        ("human", "No tool was called: "),
    ]
    assert [len(request.messages) for request in asked] == [1, 3, 5]
    assert ("(2 of 2)" in shown[1].text, "was not run" in shown[2].text) == (True, True)


async def test_the_reply_to_a_correction_has_the_tokens_of_both() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    first = TEXT_CALL.model_copy(update={"usage_metadata": usage})

    reply, _, _ = await corrected([first, AIMessage("done", usage_metadata=usage)])

    assert (reply.text, reply.usage_metadata) == (
        "done",
        {"input_tokens": 2, "output_tokens": 4, "total_tokens": 6},
    )


@pytest.mark.parametrize(
    ("reply", "is_answer"),
    [
        (AIMessage("hi"), True),
        (AIMessage(TEXT_CALL.text, tool_calls=[{"name": "ls", "args": {}, "id": "c"}]), True),
        (AIMessage('<tool_call>{"name": "rm"}</tool_call>'), True),
        (AIMessage(f"So:\n```\n{BROKEN}\n```"), True),
        (AIMessage(BROKEN), False),
        (AIMessage('<tool_call>{"name": 5, "arguments": {}}</tool_call>'), False),
    ],
)
async def test_only_a_call_that_was_meant_is_corrected(reply: AIMessage, is_answer: bool) -> None:
    _, asked, shown = await corrected([reply, AIMessage("done")])

    assert (len(asked) == 1) is is_answer
    assert is_answer or "the call of a tool without a name as text" in shown[0].text


async def test_without_tools_nothing_is_corrected() -> None:
    _, asked, _ = await corrected([TEXT_CALL], ModelRequest(REQUEST.messages, []))

    assert len(asked) == 1


def test_usage_is_added_where_either_reply_has_it() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    counted = AIMessage("a", usage_metadata=usage)

    assert add_earlier_usage(counted, AIMessage("b")).usage_metadata == usage
    assert add_earlier_usage(AIMessage("a"), AIMessage("b")) == AIMessage("a")
