import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from graph_agent.calls import REPLACES, SHORTENED, merge_messages
from graph_agent.graph.compaction import (
    Facts,
    RequestSize,
    context_use,
    is_summary,
    outline,
    plan_compaction,
    requests_in,
    summary_message,
    summary_request,
)
from graph_agent.graph.context_size import ContextUse, size_of
from graph_agent.graph.history import require_valid
from graph_agent.ports import ModelRequest
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import estimate_request_tokens


def turn(number: int, steps: int) -> list[AnyMessage]:
    messages: list[AnyMessage] = [HumanMessage(f"do {number}", id=f"h{number}")]
    for step in range(steps):
        call = f"c{number}-{step}"
        messages.append(AIMessage("", id=f"a{call}", tool_calls=[{"id": call, "name": "grep", "args": {}}]))
        messages.append(ToolMessage("found", tool_call_id=call, id=f"t{call}", name="grep"))
    return [*messages, AIMessage("done", id=f"d{number}")]


def costs_of(messages: list[AnyMessage], result: int) -> list[int]:
    return [result if message.type == "tool" else 20 for message in messages]


def ids(messages: tuple[AnyMessage, ...]) -> list[str | None]:
    return [message.id for message in messages]


def test_old_bulky_results_go_before_anything_is_summarized() -> None:
    messages = [*turn(0, 3), *turn(1, 3)]

    plan = plan_compaction(messages, costs_of(messages, 1_000), 4_500)

    assert plan is not None
    assert (ids(plan.shortened), plan.replaced, plan.left) == (["tc0-0", "tc0-1"], (), 6_200 - 2 * 920)


def test_what_is_still_too_long_is_summarized_from_the_oldest_on_and_the_newest_step_stays() -> None:
    messages = [*turn(0, 4), *turn(1, 4)[:-1]]

    plan = plan_compaction(messages, costs_of(messages, 200), 400)

    assert plan is not None
    assert ids(plan.replaced) == [message.id for message in messages[:-2] if message.id != "h1"]


def test_a_small_result_and_one_that_is_short_already_are_left_alone() -> None:
    short = ToolMessage("kept", tool_call_id="c", id="t", response_metadata={SHORTENED: True})
    calling = AIMessage("", id="a", tool_calls=[{"id": "c", "name": "grep", "args": {}}])

    assert plan_compaction([HumanMessage("x", id="h"), calling, short], [10, 10, 900], 100, is_deep=True) is None


def test_the_results_of_the_newest_step_are_shortened_only_where_nothing_else_helps() -> None:
    messages = turn(0, 1)[:-1]

    assert plan_compaction(messages, costs_of(messages, 9_000), 500) is None
    deep = plan_compaction(messages, costs_of(messages, 9_000), 500, is_deep=True)
    assert deep is not None
    assert (ids(deep.shortened), deep.replaced) == (["tc0-0"], ())


def test_a_conversation_of_one_message_cannot_be_made_shorter() -> None:
    assert plan_compaction([HumanMessage("all of it", id="h")], [10_000], 100, is_deep=True) is None


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
    st.integers(1, 3_000),
    st.integers(10, 20_000),
    st.booleans(),
)
def test_what_is_left_is_a_valid_conversation_with_the_request_under_way(
    turns: list[int],
    result: int,
    goal: int,
    is_deep: bool,
) -> None:
    messages = [message for number, steps in enumerate(turns) for message in turn(number, steps)]
    plan = plan_compaction(messages, costs_of(messages, result), goal, is_deep=is_deep)
    if plan is None:
        return
    stubs = [message.model_copy(update={"content": "short"}) for message in plan.shortened]
    gone = [message.id for message in plan.replaced]
    summary = [HumanMessage("so far", id="s", response_metadata={REPLACES: gone})] if gone else []

    left = merge_messages(messages, [[*stubs, *summary]])

    require_valid(left)
    assert left[0].type == "human"
    assert left[-1].id == messages[-1].id
    assert [message.id for message in left if message.type == "human" and not is_summary(message)][-1:] == [
        f"h{len(turns) - 1}"
    ]


TALK: list[AnyMessage] = [
    HumanMessage("rename the port", id="h1"),
    AIMessage("I look.", id="a1", tool_calls=[{"id": "c", "name": "grep", "args": {"pattern": "port"}}]),
    ToolMessage("a.py:1: port = 80\nb.py:2: port", tool_call_id="c", id="t1", name="grep"),
    AIMessage("It is in two files.", id="a2"),
]
NOTHING = Facts((), (), ())


def test_an_outline_says_what_was_called_and_how_it_ended() -> None:
    assert outline(TALK) == (
        "- the model: I look.\n"
        "- grep(pattern='port'): a.py:1: port = 80 b.py:2: port\n"
        "- the model: It is in two files."
    )


def test_a_summary_of_a_summary_takes_over_requests_and_what_was_done() -> None:
    first = summary_message(TALK, outline(TALK), Facts(requests_in(TALK), (), ()), 2_000)
    later: list[AnyMessage] = [first, HumanMessage("and test it", id="h2"), AIMessage("Done.", id="a3")]

    assert requests_in(later) == ("rename the port", "and test it")
    assert outline(later) == f"{outline(TALK)}\n- the model: Done."


def test_a_summary_replaces_what_it_is_of_and_holds_the_facts() -> None:
    facts = Facts(("rename the port",), ["/w/a.py"], [{"content": "test it", "status": "pending"}])

    message = summary_message(TALK, "They chose 8080.", facts, 2_000)

    head, *parts = message.text.split("\n\n")
    assert head.startswith("[Summary of the conversation until here, written by the program, not by the user.")
    assert parts == [
        "The user asked for, in the user's own words:\n- rename the port",
        "What was done:\nThey chose 8080.",
        "Files that calls wrote:\n- /w/a.py",
        "The plan:\n- [pending] test it",
    ]
    assert message.response_metadata[REPLACES] == ["h1", "a1", "t1", "a2"]


def test_a_summary_stays_within_its_length_however_much_there_is_to_say() -> None:
    facts = Facts(tuple(f"request {number} " * 30 for number in range(40)), [f"/w/{n}.py" for n in range(999)], ())

    message = summary_message(TALK, "done " * 9_000, facts, 1_000)

    assert 500 < estimate_request_tokens([message]) < 1_300


@pytest.mark.parametrize(
    "words", ["message {} ", "代理在运行{}命令之前", "{}77,{}31;"], ids=["words", "chinese", "numbers"]
)
def test_what_is_asked_fits_the_room_and_keeps_beginning_and_end(words: str) -> None:
    talk: list[AnyMessage] = [
        HumanMessage(words.format(number, number) * 200, id=f"h{number}") for number in range(50)
    ]

    asked = summary_request(talk, 2_000, 300)

    assert estimate_request_tokens(asked) < 2_020
    assert [words.format(number, number) in asked[1].text for number in (0, 49)] == [True, True]


def test_lone_surrogates_reach_neither_request_nor_summary() -> None:
    talk: list[AnyMessage] = [HumanMessage("odd \udc80 word", id="h")]

    (asked,) = summary_request(talk, 1_000, 100)[1:]
    message = summary_message(talk, "done \udc80", Facts(requests_in(talk), (), ()), 500)

    assert ("odd ? word" in asked.text, "odd ? word" in message.text, "done ?" in message.text) == (True,) * 3


def test_without_anything_to_report_there_is_only_the_headline() -> None:
    assert "\n" not in summary_message(TALK, "", NOTHING, 500).text


def test_what_fills_the_context_is_counted_by_part_and_by_tool_at_the_providers_scale() -> None:
    call = {"id": "c1", "name": "bash", "args": {"command": "make"}}
    summary = HumanMessage("what was done before " * 9, id="s", response_metadata={REPLACES: ["h0"]})
    asks, result = HumanMessage("make it " * 30, id="h"), ToolMessage("ok " * 50, tool_call_id="c1", name="bash")
    tools = [{"type": "function", "function": {"name": name, "description": "x " * 40}} for name in ("bash", "ls")]
    head = [SystemMessage("rules " * 20, id="r"), summary, asks]
    estimated = estimate_request_tokens([*head], tools)
    reply = AIMessage("", id="a", tool_calls=[call], usage_metadata=_reported(2 * estimated))
    request, window = ModelRequest([*head, reply, result], tools), ContextWindow(50_000, "set")
    size = size_of(request.messages, tools)

    use = context_use(request, RequestSize(size, window, window))

    scaled = [round(size.scale * estimate_request_tokens([one])) for one in request.messages]
    each = round(size.scale * estimate_request_tokens([], tools[1:]))
    assert use == ContextUse(
        instructions=scaled[0],
        tools={"bash": each, "ls": each},
        summary=scaled[1],
        messages=scaled[2],
        replies=scaled[3],
        results={"bash": scaled[4]},
        window=window,
        compacted_above=use.compacted_above,
        is_estimated=False,
    )
    assert abs(use.total - size.total) < 8
    assert use.total < use.compacted_above < 50_000


def _reported(tokens: int) -> UsageMetadata:
    return {"input_tokens": tokens, "output_tokens": 5, "total_tokens": tokens + 5}
