from graph_agent.cli.views.screen import local_time
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import asking, text_of


def test_a_question_is_told_with_all_one_needs_to_answer_it(rows: Rows) -> None:
    asking(rows, risk="high", preview={"kind": "diff", "text": "--- a\n+++ b"})
    rows.call(record_of("awaiting_approval", "call_b"))

    assert text_of(rows, "approvals", "list").splitlines() == [
        "call_a  bash  HIGH",
        f"  thread t1, asked {local_time(START)}",
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
        "Answer with: graph-agent approvals approve CALL, or approvals reject CALL --reason TEXT",
    ]


def test_a_long_preview_ends_with_how_to_see_the_rest(rows: Rows) -> None:
    asking(rows, preview={"text": "\n".join(map(str, range(50)))})

    assert "  │ 39\n  │ … 10 more lines; --json has them all\n" in text_of(rows, "approvals", "list")
