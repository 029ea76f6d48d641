from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.model.openai.prompted_tools import to_prompt_protocol

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


def test_what_is_no_text_stays_beside_it() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    result = ToolMessage([{"type": "text", "text": "see"}, image], tool_call_id="1", name="ls")

    _, (_, content) = sent([result, HumanMessage("what is it?")])

    assert content == [
        {"type": "text", "text": '<tool_result name="ls">\nsee\n</tool_result>'},
        image,
        {"type": "text", "text": "what is it?"},
    ]
