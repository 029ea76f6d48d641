import json

from tests.fakes.database_rows import Rows
from tests.fakes.light_commands import asking, run


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
