import io
import re

from graph_agent.cli.headless.report import ProgressReporter
from graph_agent.events import TextDelta, ToolCallCreated, ToolCallFinished, ToolCallStarted, WarningIssued


def test_a_call_is_one_line_with_status_time_and_reason() -> None:
    stream = io.StringIO()
    news = ProgressReporter(stream)

    news(1, ToolCallCreated({"call_id": "c1", "tool_name": "bash", "summary": "bash ls"}))
    news(2, ToolCallStarted("c1", "bash", "bash ls"))
    news(3, TextDelta("not news"))
    news(4, ToolCallFinished("c1", "bash", "error", "bash ls", error="exit code 3"))
    news(5, ToolCallFinished("c2", "write_file", "cancelled", "a.txt", reason="not now"))

    told = re.sub(r"\d+\.\d s", "N s", stream.getvalue())
    assert told == "bash ls - error N s: exit code 3\nwrite_file a.txt - cancelled: not now\n"


def test_what_becomes_of_an_interrupted_call_that_does_not_run_again_is_a_decision() -> None:
    stream = io.StringIO()
    news = ProgressReporter(stream)

    news(1, ToolCallFinished("c1", "bash", "interrupted", "$ make", reason="outcome_unknown"))
    news(2, ToolCallFinished("c1", "bash", "success", "$ make", reason="outcome_unknown"))
    news(3, ToolCallStarted("c2", "bash", "$ make"))
    news(4, ToolCallFinished("c2", "bash", "error", "$ make", error="no", reason="outcome_unknown"))

    assert stream.getvalue().splitlines() == [
        "bash $ make - interrupted: outcome_unknown",
        "bash $ make - success, as was decided",
        "bash $ make - error 0.0 s: no",
    ]


def test_nothing_of_a_note_is_obeyed_by_the_terminal() -> None:
    stream = io.StringIO()

    ProgressReporter(stream)(1, WarningIssued("a\rb\x1b[2Jc"))

    assert stream.getvalue() == "note: a\\rb\\x1b[2Jc\n"
