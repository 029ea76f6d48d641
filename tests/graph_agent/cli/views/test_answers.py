from graph_agent.cli.views.table import format_time
from tests.fakes.database_rows import START, Rows
from tests.fakes.light_commands import asking, run


def test_whoever_is_late_is_told_what_was_answered_by_whom_and_when(rows: Rows) -> None:
    asking(rows)
    rows.decision("reject")

    late = run("approvals", "approve", "call_a", "--db", str(rows.path))

    told = f"call_a was answered before: reject by cli pid 7, {format_time(START)}\n"
    assert (late.exit_code, late.stdout) == (1, told)
