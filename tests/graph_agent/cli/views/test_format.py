import io
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graph_agent.cli.options import default_workspace, resolve_database
from graph_agent.cli.views.format import (
    age_seconds,
    confirm,
    format_age,
    format_compaction,
    format_cost,
    format_cost_lines,
    format_count,
    format_message,
    format_names,
    format_omitted,
    format_shell,
    format_short_usage,
    format_time_and_age,
    format_todo,
    format_usage,
    parse_duration,
    sum_tokens,
)
from graph_agent.cli.views.table import format_time
from graph_agent.errors import UsageError
from graph_agent.events import Compacted, ShellContinued, ShellEnded
from graph_agent.inspect import TranscriptEntry
from graph_agent.ports.usage import usage_report


def _ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def test_an_age_is_shown_in_its_largest_unit() -> None:
    ages = [format_age(_ago(**{unit: 3.5})) for unit in ("days", "hours", "minutes", "seconds")]

    assert ages == ["3 d ago", "3 h ago", "3 min ago", "3 s ago"]
    assert [format_age(_ago(seconds=-60)), format_age(None), format_age("then")] == ["just now", "", "then"]


def test_a_time_is_shown_with_its_age() -> None:
    asked = _ago(minutes=5)

    assert format_time_and_age(asked) == f"{format_time(asked)}, 5 min ago"
    assert (format_time_and_age(""), age_seconds("then")) == ("", None)


def test_a_duration_is_a_number_and_a_unit() -> None:
    spans = [parse_duration(written, "--older-than") for written in ("90s", "10m", "1.5h", "2 D", "1w")]

    assert spans == [90, 600, 5400, 172_800, 604_800]


@pytest.mark.parametrize("text", ["", "d", "-3d", "3 years", "soon"])
def test_text_that_is_no_duration_is_a_usage_error_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="Examples: 90s"):
        parse_duration(text, "--older-than")


def test_each_todo_item_is_one_marked_line() -> None:
    plan = [
        {"content": "look", "status": "completed"},
        {"content": "act\x1b[2J", "status": "in_progress"},
        {"content": "tell", "status": "pending"},
    ]

    assert format_todo(plan) == ["[x] look", "[>] act\\x1b[2J", "[ ] tell"]


def test_a_compaction_is_one_line_with_sizes_and_method() -> None:
    assert format_compaction(Compacted(84_000, 21_000, "summary")) == (
        "Compacted 84,000 → 21,000 tokens (model summary)"
    )


@pytest.mark.parametrize(
    ("typed", "is_agreed"), [("y\n", True), (" YES \n", True), ("\n", False), ("n\n", False), ("yea\n", False)]
)
def test_anything_but_yes_is_no(monkeypatch: pytest.MonkeyPatch, typed: str, is_agreed: bool) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))

    assert confirm("Go on?", hint="--yes") is is_agreed


def test_the_end_of_stdin_is_an_error_or_without_a_hint_means_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    with pytest.raises(UsageError, match="--yes"):
        confirm("Go on?", hint="--yes")
    assert confirm("Go on?") is False


def test_a_count_of_one_is_singular() -> None:
    assert [format_count(count, "call") for count in (0, 1, 2)] == ["0 calls", "1 call", "2 calls"]
    assert [format_omitted(count, "more line") for count in (1, 2)] == [
        "… 1 more line; --full shows it",
        "… 2 more lines; --full shows them",
    ]


def test_a_long_message_is_cut_unless_full() -> None:
    body = {"content": "\n".join(f"line {number}" for number in range(10)), "tool_call_id": "call_a"}

    short = list(format_message("tool", body, full=False))
    full = list(format_message("tool", body, full=True))

    assert (short[0], short[-1]) == ("tool call_a", "  … 2 more lines; --full shows them")
    assert full[1:] == [f"  line {number}" for number in range(10)]


def test_long_arguments_are_cut_unless_full() -> None:
    body = {"content": "", "tool_calls": [{"name": "bash", "args": {"command": "x" * 200}, "id": "c"}]}

    [_, short] = format_message("ai", body, full=False)
    [*_, full] = format_message("ai", body, full=True)

    assert short.endswith("…")
    assert "x" * 200 in full


def test_tokens_are_those_that_the_provider_reported() -> None:
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


@pytest.mark.parametrize(
    ("names", "more", "shown"),
    [
        ([], 0, "no files that git tracks"),
        (["a"], 0, "a"),
        (["a", "b"], 3, "a, b and 3 more"),
        ([str(number) for number in range(10)], 5, "0, 1, 2, 3, 4, 5, 6, 7 and 7 more"),
    ],
)
def test_the_first_names_are_listed_and_the_others_counted(names: list[str], more: int, shown: str) -> None:
    assert format_names(names, more) == shown


def test_a_named_database_has_no_default_workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPH_AGENT_DB", "/env/graph-agent.db")
    monkeypatch.chdir(tmp_path)

    assert (resolve_database("/named.db"), default_workspace("/named.db")) == (Path("/named.db"), None)
    assert (resolve_database(None), default_workspace(None)) == (Path("/env/graph-agent.db"), str(tmp_path))


def test_a_background_shell_is_one_line() -> None:
    lines = [
        format_shell(ShellEnded("sh1", "npm run dev", "exit code 1")),
        format_shell(ShellContinued("sh2", "for i in 1 2\ndo echo $i; done")),
        format_shell(ShellContinued("sh3", "x" * 200)),
    ]

    assert lines == [
        "background shell sh1: exit code 1  $ npm run dev",
        "background shell sh2: still running  $ for i in 1 2…",
        f"background shell sh3: still running  $ {'x' * 80}…",
    ]


def used(**further: Any) -> dict[str, Any]:
    return usage_report({"input_tokens": 12_000, "output_tokens": 345, "total_tokens": 12_345, **further})


def test_usage_is_shown_with_cached_and_reasoning_tokens() -> None:
    whole = used(cached_input_tokens=8_000, reasoning_tokens=200, cost=0.0123, currency="EUR")

    assert format_usage(whole) == "12,000 in (8,000 cached), 345 out (200 reasoning), cost 0.0123 EUR"
    assert format_short_usage(whole) == "12.3k tokens · cost 0.0123 EUR"


def test_estimated_usage_is_marked_and_an_unknown_price_is_named() -> None:
    assert format_usage(used(estimated_requests=1)) == "~12,000 in, ~345 out, cost unknown"
    assert (
        format_short_usage(used(estimated_requests=1, cost=2.0, currency="USD")) == "~12.3k tokens · cost ~2.00 USD"
    )


@pytest.mark.parametrize(
    ("cost", "shown"), [(0.0, "0"), (0.00002, "0.000020 USD"), (0.05, "0.0500 USD"), (12.5, "12.50 USD")]
)
def test_a_small_cost_has_more_digits(cost: float, shown: str) -> None:
    assert format_cost(used(cost=cost, currency="USD")) == shown


@pytest.mark.parametrize(("tokens", "shown"), [(0, "0"), (999, "999"), (2_500, "2.5k"), (3_250_000, "3.25M")])
def test_many_tokens_are_abbreviated(tokens: int, shown: str) -> None:
    assert format_short_usage(usage_report({"total_tokens": tokens})).startswith(f"{shown} tokens")


def test_costs_are_shown_for_turn_and_thread_with_a_hint_for_prices() -> None:
    turn = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "requests": 1}

    assert list(format_cost_lines(turn, turn)) == [
        "this turn: 1 request, 1 in, 2 out, cost unknown",
        "this thread: 1 request, 1 in, 2 out, cost unknown",
        'No price configured: add [prices."MODEL"] to config.toml, with input and output per million tokens.',
    ]
    assert list(format_cost_lines(None, None)) == [
        "this turn: 0 requests, 0 in, 0 out, cost 0",
        "this thread: 0 requests, 0 in, 0 out, cost 0",
    ]
