from graph_agent.cli.views.calls import format_call
from graph_agent.inspect import CallView
from tests.fakes.database_rows import record_of


def test_a_call_is_shown_with_all_of_its_arguments_and_its_result() -> None:
    output = "".join(f"line {number}\n" for number in range(50))
    record = record_of("success", arguments={"command": "seq\x1b[2J", "timeout": 3}, result=output)

    assert list(format_call(CallView("t1", record))) == [
        "  command: seq\\x1b[2J",
        "  timeout: 3",
        "  result:",
        *(f"  │ line {number}" for number in range(50)),
    ]


def test_a_failure_and_a_change_are_shown_too() -> None:
    diff = {"unified": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"}
    record = record_of("error", arguments={}, error_msg="no", metadata={"diff": diff})

    assert list(format_call(CallView("t1", record))) == [
        "  error: no",
        "  change:",
        *(f"  │ {line}" for line in diff["unified"].splitlines()),
    ]
