import json
from datetime import UTC, datetime

import pytest

from graph_agent.cli.views.format import format_time_and_age
from graph_agent.cli.views.table import format_time
from graph_agent.errors import UsageError
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import asking, json_of, run, text_of


def test_a_question_is_told_with_all_one_needs_to_answer_it(rows: Rows) -> None:
    asking(rows, risk="high", preview={"kind": "diff", "text": "--- a\n+++ b"})
    rows.call(record_of("awaiting_approval", "call_b"))

    assert text_of(rows, "approvals", "list").splitlines() == [
        "call_a  bash  HIGH",
        f"  thread t1, asked {format_time_and_age(START)}",
        "  runs a command",
        "  │ --- a",
        "  │ +++ b",
        "",
        "call_b  bash  MEDIUM",
        "  thread t1, asked ",
        "  │ {",
        '  │   "command": "make"',
        "  │ }",
        "",
        "Respond with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT",
    ]


def test_a_long_preview_ends_with_how_to_see_the_rest(rows: Rows) -> None:
    asking(rows, preview={"text": "\n".join(map(str, range(50)))})

    assert "  │ 39\n  │ … 10 more lines; --json shows all\n" in text_of(rows, "approvals", "list")


def _listed(rows: Rows, *filters: str) -> list[str]:
    return [call["call_id"] for call in json_of(rows, "approvals", "list", *filters)["approvals"]]


def test_questions_can_be_chosen_by_thread_tool_risk_and_age(rows: Rows) -> None:
    now = datetime.now(UTC).isoformat()
    asking(rows, "thread-one", risk="high", call_id="old", asked_at="2026-01-01T00:00:00Z")
    asking(rows, "thread-two", risk="medium", call_id="new", tool_name="web_fetch", asked_at=now)

    assert _listed(rows, "--tool", "grep") == []
    assert (_listed(rows, "--thread", "-one"), _listed(rows, "--tool", "web_fetch")) == (["old"], ["new"])
    assert (_listed(rows, "--risk", "high"), _listed(rows, "--older-than", "1h")) == (["old"], ["old"])
    assert sorted(_listed(rows, "--older-than", "0s")) == ["new", "old"]


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (["--risk", "huge"], "low, medium, high"),
        (["--older-than", "x"], "--older-than 'x'"),
        (["--thread", "nowhere"], "'nowhere'"),
    ],
)
def test_a_filter_that_can_fit_nothing_is_refused(rows: Rows, filters: list[str], told: str) -> None:
    assert told in str(run("approvals", "list", *filters, "--db", str(rows.path)).exception)


def test_workspaces_are_told_where_questions_come_from_several(rows: Rows) -> None:
    asking(rows)
    rows.thread("t2", next_nodes=("human_approval",), workspace="/elsewhere")
    rows.call(record_of("awaiting_approval", "call_b"), "t2")

    assert "  thread t2 in /elsewhere, asked " in text_of(rows, "approvals", "list")


def test_a_command_stands_above_how_it_was_understood(rows: Rows) -> None:
    asking(rows, preview={"kind": "text", "text": "in      /work"})

    assert "  │ $ make\n  │ in      /work\n" in text_of(rows, "approvals", "list")


def test_whoever_is_late_is_told_what_was_answered_by_whom_and_when(rows: Rows) -> None:
    asking(rows)
    rows.decision("reject")

    late = run("approvals", "approve", "call_a", "--db", str(rows.path))

    told = f"call_a was already answered: reject by cli pid 7, {format_time(START)}\n"
    assert (late.exit_code, late.stdout) == (1, told)


def test_a_late_always_is_told_who_was_first_and_stores_nothing(rows: Rows) -> None:
    asking(rows)
    rows.decision("reject")

    late = run("approvals", "approve", "call_a", "--always", "--json", "--db", str(rows.path))
    listed = run("policy", "list", "--json", "--db", str(rows.path))

    told = json.loads(late.stdout)
    assert (late.exit_code, told["kind"], told["accepted"], "always" in told) == (1, "reject", False, False)
    assert json.loads(listed.stdout)["grants"] == []


def test_a_scope_without_always_is_a_wrong_use(rows: Rows) -> None:
    asking(rows)

    wrong = run("approvals", "approve", "call_a", "--scope", "user", "--db", str(rows.path))

    assert (wrong.exit_code, "--always" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"'])
def test_arguments_are_one_json_object(rows: Rows, text: str) -> None:
    asking(rows)

    refused = run("approvals", "edit", "call_a", "--arguments", text, "--db", str(rows.path)).exception

    assert isinstance(refused, UsageError)
    assert repr(text) in str(refused)
