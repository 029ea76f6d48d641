from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph_agent.calls import REPLACES, SHORTENED, merge_messages
from graph_agent.graph.compaction import is_summary, plan_compaction
from graph_agent.graph.history import require_valid


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


def test_old_bulky_results_go_before_anything_is_summed_up() -> None:
    messages = [*turn(0, 3), *turn(1, 3)]

    plan = plan_compaction(messages, costs_of(messages, 1_000), 4_500)

    assert plan is not None
    assert (ids(plan.shortened), plan.replaced, plan.left) == (["tc0-0", "tc0-1"], (), 6_200 - 2 * 920)


def test_what_is_still_too_long_is_summed_up_from_the_oldest_on_and_the_newest_step_stays() -> None:
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
