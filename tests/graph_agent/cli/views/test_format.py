import io
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graph_agent.cli.options import default_workspace, resolve_database
from graph_agent.cli.views.format import (
    confirm,
    format_compaction,
    format_context_use,
    format_cost_lines,
    format_message,
    format_omitted,
    format_shell,
    format_time_and_age,
    format_todo,
    parse_duration,
)
from graph_agent.cli.views.table import format_time
from graph_agent.errors import UsageError
from graph_agent.events import Compacted, ShellContinued, ShellEnded
from graph_agent.graph.context_size import ContextUse
from graph_agent.inspect import TranscriptEntry
from graph_agent.inspect.transcript import sum_tokens
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import format_cost, format_short_cost, format_usage, usage_report
from graph_agent.wording import age_seconds, format_age, format_count, format_names


def _ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def _used(**further: Any) -> dict[str, Any]:
    return usage_report({"input_tokens": 12_000, "output_tokens": 345, "total_tokens": 12_345, **further})


_DETAILED = _used(cached_input_tokens=8_000, reasoning_tokens=200, cost=0.0123, currency="EUR")
_TODO = [
    {"content": "look", "status": "completed"},
    {"content": "act\x1b[2J", "status": "in_progress"},
    {"content": "report", "status": "pending"},
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_age(_ago(days=3.5)), "3 d ago"),
        (format_age(_ago(hours=3.5)), "3 h ago"),
        (format_age(_ago(minutes=3.5)), "3 min ago"),
        (format_age(_ago(seconds=3.5)), "3 s ago"),
        (format_age(_ago(seconds=-60)), "just now"),
        (format_age(None), ""),
        (format_age("then"), "then"),
        (format_time_and_age(""), ""),
        (format_count(0, "call"), "0 calls"),
        (format_count(1, "call"), "1 call"),
        (format_omitted(1, "more line"), "… 1 more line; --full shows it"),
        (format_omitted(2, "more line"), "… 2 more lines; --full shows them"),
        (format_names([]), "no files that git tracks"),
        (format_names(["a"]), "a"),
        (format_names(["a", "b"], 3), "a, b and 3 more"),
        (format_names([str(number) for number in range(10)], 5), "0, 1, 2, 3, 4, 5, 6, 7 and 7 more"),
        ("\n".join(format_todo(_TODO)), "[x] look\n[>] act\\x1b[2J\n[ ] report"),
        (
            format_compaction(Compacted(84_000, 21_000, "summary")),
            "Compacted 84,000 → 21,000 tokens (model summary)",
        ),
        (format_shell(ShellEnded("s1", "npm run", "exit code 1")), "background shell s1: exit code 1  $ npm run"),
        (format_shell(ShellContinued("s2", "for i\ndo")), "background shell s2: still running  $ for i…"),
        (format_shell(ShellContinued("s3", "x" * 99)), f"background shell s3: still running  $ {'x' * 80}…"),
        (format_usage(_DETAILED), "12,000 in (8,000 cached), 345 out (200 reasoning), cost 0.0123 EUR"),
        (format_usage(_used(estimated_requests=1)), "~12,000 in, ~345 out, cost unknown"),
        (format_short_cost(_DETAILED), "0.01 EUR"),
        (format_short_cost(_used(cost=2.0, currency="USD")), "$2.00"),
        (format_short_cost(_used()), ""),
        *(
            (format_cost(_used(cost=cost, currency="USD")), shown)
            for cost, shown in ((0.0, "0"), (2e-5, "0.000020 USD"), (0.05, "0.0500 USD"), (12.5, "12.50 USD"))
        ),
    ],
)
def test_values_are_formatted(text: str, expected: str) -> None:
    assert text == expected


def test_a_time_is_shown_with_its_age() -> None:
    asked = _ago(minutes=5)

    assert format_time_and_age(asked) == f"{format_time(asked)}, 5 min ago"
    assert age_seconds("then") is None


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


def test_the_context_is_shown_by_part_with_the_tools_that_take_most_of_it() -> None:
    tools, results = {"bash": 300, "ls": 100}, {"read_file": 1_500, "bash": 4_000}
    use = ContextUse(1_200, tools, 0, 250, 900, results, ContextWindow(50_000, "table"), 39_000, is_estimated=True)

    assert list(format_context_use(use)) == [
        "~8,250 of 50,000 tokens (16%; window: known for this model)",
        "  instructions                  1,200",
        "  tools                           400  bash 300, ls 100",
        "  your messages                   250",
        "  replies                         900",
        "  results                       5,500  bash 4,000, read_file 1,500",
        "  free                         41,750",
        "The conversation is compacted before a request of more than 39,000 tokens.",
    ]


def test_a_long_message_and_long_arguments_are_cut_unless_full() -> None:
    result = {"content": "\n".join(f"line {number}" for number in range(10)), "tool_call_id": "call_a"}
    request = {"content": "", "tool_calls": [{"name": "bash", "args": {"command": "x" * 200}, "id": "c"}]}

    short, full = (list(format_message("tool", result, full=full)) for full in (False, True))
    [_, short_call] = format_message("ai", request, full=False)
    [*_, full_call] = format_message("ai", request, full=True)

    assert (short[0], short[-1]) == ("tool call_a", "  … 2 more lines; --full shows them")
    assert full[1:] == [f"  line {number}" for number in range(10)]
    assert (short_call.endswith("…"), "x" * 200 in full_call) == (True, True)


def test_tokens_are_those_that_the_provider_reported() -> None:
    usages = ({"input_tokens": 3, "output_tokens": 1}, None, {"input_tokens": "many"}, {"input_tokens": 4})
    entries = [
        TranscriptEntry(number, 0, str(number), "assistant", {"usage": usage}, "c1", "then")
        for number, usage in enumerate(usages)
    ]

    assert sum_tokens(entries) == {"input_tokens": 7, "output_tokens": 1}


def test_a_duration_is_a_number_and_a_unit() -> None:
    durations = [parse_duration(text, "--older-than") for text in ("90s", "10m", "1.5h", "2 D", "1w")]

    assert durations == [90, 600, 5400, 172_800, 604_800]


@pytest.mark.parametrize("text", ["", "d", "-3d", "3 years", "soon"])
def test_text_that_is_no_duration_is_a_usage_error_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="Examples: 90s"):
        parse_duration(text, "--older-than")


@pytest.mark.parametrize(
    ("typed", "agrees"), [("y\n", True), (" YES \n", True), ("\n", False), ("n\n", False), ("yea\n", False)]
)
def test_anything_but_yes_is_no_and_the_end_of_stdin_is_an_error_if_there_is_a_hint(
    monkeypatch: pytest.MonkeyPatch, typed: str, agrees: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))

    assert confirm("Go on?", hint="--yes") is agrees
    with pytest.raises(UsageError, match="--yes"):
        confirm("Go on?", hint="--yes")
    assert confirm("Go on?") is False


def test_a_named_database_has_no_default_workspace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPH_AGENT_DB", "/env/graph-agent.db")
    monkeypatch.chdir(tmp_path)

    assert (resolve_database("/named.db"), default_workspace("/named.db")) == (Path("/named.db"), None)
    assert (resolve_database(None), default_workspace(None)) == (Path("/env/graph-agent.db"), str(tmp_path))
