import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.graph.context_size import Allowance, Size, allowance_of, size_of
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import EstimateCache, estimate_message_tokens

TOOLS = [{"type": "function", "function": {"name": "read_file"}}]
CALL = {"id": "c", "name": "read_file", "args": {}}


def conversation(told: int) -> list[BaseMessage]:
    usage = {"input_tokens": told, "output_tokens": 900, "total_tokens": told + 900}
    return [
        SystemMessage("rules " * 500, id="s"),
        HumanMessage("please " * 500, id="h"),
        AIMessage("", id="a", tool_calls=[CALL], usage_metadata=usage),
        ToolMessage("line\n" * 100, tool_call_id="c", id="t"),
    ]


def test_instructions_and_tools_are_weighed_apart_from_the_conversation() -> None:
    system, *talk = conversation(0)

    size = size_of([system, *talk], TOOLS)

    assert size == Size(
        estimate_message_tokens(system) + EstimateCache().declarations_tokens(TOOLS),
        tuple(map(estimate_message_tokens, talk)),
    )


def test_what_the_provider_counted_goes_before_the_estimate_and_the_rest_is_added() -> None:
    messages = conversation(800)

    size = size_of(messages, TOOLS)

    assert size.total == 800 + sum(map(estimate_message_tokens, messages[2:]))


@pytest.mark.parametrize("told", [1, 10**9])
def test_a_count_that_cannot_be_is_not_believed(told: int) -> None:
    assert size_of(conversation(told), TOOLS) == size_of(conversation(0), TOOLS)


def test_counts_from_before_a_compaction_say_nothing() -> None:
    assert size_of(conversation(800), TOOLS, "t") == size_of(conversation(0), TOOLS)
    assert size_of(conversation(800), TOOLS, "h").reported is not None


def test_long_instructions_leave_a_part_of_the_window_for_the_conversation() -> None:
    roomy = allowance_of(Size(1_000, (5_000,)), ContextWindow(21_000, reserve=10_000, compact_at=50))
    tight = allowance_of(Size(9_000, (500,)), ContextWindow(8_000, reserve=0))

    assert roomy == Allowance(limit=1_000 + 7_375, goal=3_687, ceiling=15_750)
    assert tight == Allowance(limit=9_000 + 1_000, goal=500, ceiling=8_000)


def test_a_message_is_weighed_once_and_again_when_it_was_shortened() -> None:
    known = EstimateCache()
    long, short = ToolMessage("x " * 900, tool_call_id="c", id="t"), ToolMessage("x", tool_call_id="c", id="t")

    sizes = [size_of([message], (), known=known).messages for message in (long, short, long)]

    assert sizes == [size_of([message], ()).messages for message in (long, short, long)]
