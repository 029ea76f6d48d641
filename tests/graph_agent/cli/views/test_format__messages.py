from typing import Any

from graph_agent.cli.views.format import format_message, sum_tokens
from graph_agent.inspect import TranscriptEntry


def test_a_long_message_ends_early_unless_all_of_it_is_asked_for() -> None:
    body = {"content": "\n".join(f"line {number}" for number in range(10)), "tool_call_id": "call_a"}

    short = list(format_message("tool", body, full=False))
    full = list(format_message("tool", body, full=True))

    assert (short[0], short[-1]) == ("tool call_a", "  … 2 more lines; --full shows them")
    assert full[1:] == [f"  line {number}" for number in range(10)]


def test_long_arguments_are_cut_unless_all_of_them_are_asked_for() -> None:
    body = {"content": "", "tool_calls": [{"name": "bash", "args": {"command": "x" * 200}, "id": "c"}]}

    [_, short] = format_message("ai", body, full=False)
    [*_, full] = format_message("ai", body, full=True)

    assert short.endswith("…")
    assert "x" * 200 in full


def test_tokens_are_those_the_provider_told() -> None:
    usages: list[Any] = [
        {"input_tokens": 3, "output_tokens": 1},
        None,
        {"input_tokens": "many"},
        {"input_tokens": 4},
    ]
    entries = [
        TranscriptEntry(number, 0, str(number), "assistant", {"usage": usage}, "c1", "then")
        for number, usage in enumerate(usages)
    ]

    assert sum_tokens(entries) == {"input_tokens": 7, "output_tokens": 1}
