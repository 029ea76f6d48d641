import io
import re
import time

import pytest
from rich.console import Console
from rich.text import Text

from graph_agent.cli.render.markdown import MarkdownStream
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.events import (
    Event,
    ModelMessage,
    SessionOpened,
    TextDelta,
    ToolCallCreated,
    ToolCallDecided,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    WarningIssued,
)
from tests.fakes.screen import Screen


def _told(*events: Event) -> str:
    stream = io.StringIO()
    story = TurnDisplay(Console(file=stream, width=60, markup=False, highlight=False, emoji=False))
    for number, event in enumerate(events, 1):
        story(number, event)
    story.finish()
    return re.sub(r"\d+\.\d s", "N s", stream.getvalue())


def test_streamed_text_is_told_once_and_ends_its_line() -> None:
    assert _told(TextDelta("[/a] "), TextDelta("b\x1b[2J"), ModelMessage("[/a] b\x1b[2J")) == "[/a] b\\x1b[2J\n"


def test_a_reply_that_did_not_stream_is_told_whole() -> None:
    assert _told(ModelMessage("one [bold]\ntwo")) == "one [bold]\ntwo\n"


def test_a_call_is_told_at_its_start_and_end_with_the_tail_of_its_output() -> None:
    output = "".join(f"line {number}\n" for number in range(1, 12))

    told = _told(
        ToolCallCreated({"call_id": "c1", "tool_name": "bash", "summary": "seq 11"}),
        ToolCallStarted("c1", "bash", "seq 11", attempt=2),
        ToolCallProgress("c1", "shell_output", "line 1\n"),
        ToolCallFinished("c1", "bash", "success", "seq 11", output),
    )

    assert told.splitlines() == [
        "● bash seq 11 (attempt 2)",
        "✓ bash seq 11  success N s",
        "  … 3 more lines; show them with /calls c1",
        *(f"  │ line {number}" for number in range(4, 12)),
    ]


def test_offline_a_call_leaves_its_output_to_the_answer() -> None:
    told = _told(
        SessionOpened("t", "", "/w", OFFLINE_LABEL, "default"),
        ToolCallFinished("c1", "ls", "success", "ls .", "a.txt\n"),
        ModelMessage(".:\na.txt"),
    )

    assert told == "✓ ls .  success\n.:\na.txt\n"


def test_a_finished_write_shows_its_diff_instead_of_its_words() -> None:
    diff = {"unified": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n", "added": 1, "removed": 1}

    told = _told(ToolCallFinished("c1", "write_file", "success", "a", "wrote a", metadata={"diff": diff}))

    assert told.splitlines()[-2:] == ["     1 -x", "     1 +y"]
    assert "wrote a" not in told


def test_a_change_that_was_seen_with_its_question_is_not_shown_again() -> None:
    diff = {"unified": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n", "added": 1, "removed": 1}

    told = _told(
        ToolCallDecided("c1", "approve", "you"),
        ToolCallFinished("c1", "write_file", "success", "a", metadata={"diff": diff}),
    )

    assert told == "✓ write_file a  success\n"


def test_what_an_interrupted_call_wrote_is_left_to_its_question() -> None:
    told = _told(ToolCallFinished("c1", "bash", "interrupted", "ls", "half\n", reason="outcome_unknown"))

    assert told == "! bash ls  interrupted  outcome_unknown\n"


def test_on_a_terminal_a_start_is_seen_in_the_live_line_alone() -> None:
    stream = io.StringIO()
    story = TurnDisplay(Console(file=stream, width=60, force_terminal=True, color_system=None, markup=False))

    story(1, ToolCallStarted("c1", "bash", "ls", attempt=2))
    drawn = stream.getvalue()
    story.finish()

    assert ("● " in drawn, "… bash ls (attempt 2)  0 s" in drawn) == (False, True)


class _Seen:
    """A story on a terminal of this size, and what is seen there."""

    def __init__(self, columns: int, rows: int) -> None:
        self._stream = io.StringIO()
        console = Console(file=self._stream, width=columns, height=rows, force_terminal=True, color_system=None)
        self.story = TurnDisplay(console)
        self.screen = Screen(columns, rows)
        self.written = 0

    def tells(self, event: Event) -> None:
        self.story(1, event)
        self.story.tick()
        self.looks()

    def looks(self) -> list[str]:
        written = self._stream.getvalue()
        self._stream.seek(0)
        self._stream.truncate()
        self.written += len(written)
        self.screen.feed(written)
        return self.screen.lines


_ANSWER = f"""# A title
Some **bold** words that are folded where the screen is narrow, 日本語のテキストも折り返されます 🎉🎉🎉.

{"".join(f"- item {number} with `code`{chr(10)}" for number in range(14))}
```python
{"".join(f"line({number})  # of code{chr(10)}" for number in range(14))}```
| a | b |
|---|---|
| 1 | 日本語 |

The end."""


@pytest.mark.parametrize("columns", [40, 120])
@pytest.mark.parametrize("size", [3, 400])
def test_an_answer_longer_than_the_screen_is_streamed_once_and_whole(columns: int, size: int) -> None:
    seen = _Seen(columns, 10)
    scrolled = list[str]()

    for start in range(0, len(_ANSWER), size):
        seen.tells(TextDelta(_ANSWER[start : start + size]))
        assert seen.screen.scrolled[: len(scrolled)] == scrolled
        scrolled = seen.screen.scrolled
    seen.tells(ModelMessage(_ANSWER))
    seen.story.finish()

    told = MarkdownStream(Console(width=columns, color_system=None))
    assert seen.looks() == [line.plain.rstrip() for line in (*told.add(_ANSWER), *told.end())]


def test_streaming_a_line_writes_hardly_more_than_the_line() -> None:
    seen, sentence = _Seen(200, 10), "word " * 30

    for word in sentence.split(" "):
        seen.tells(TextDelta(f"{word} "))

    assert seen.written < 2 * len(sentence)


def test_while_text_arrives_what_runs_and_what_is_typed_stand_below_it() -> None:
    seen = _Seen(40, 10)
    seen.tells(ToolCallStarted("c1", "bash", "ls"))
    seen.tells(TextDelta("first\nsec"))
    seen.story.show_typed("for later", 9)
    both = seen.looks()
    seen.story.line(Text("news"))
    seen.tells(TextDelta("ond"))
    with_news = seen.looks()
    seen.story.finish()

    assert both == ["first", "sec", "  … bash ls  0 s", "> for later"]
    assert with_news == ["news", "first", "second", "  … bash ls  0 s", "> for later"]
    assert seen.looks() == ["news", "first", "second"]


def test_where_nothing_is_drawn_in_place_a_long_call_is_heard_of_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, began = io.StringIO(), time.monotonic()
    story = TurnDisplay(Console(file=stream, width=60))

    story(1, ToolCallStarted("c1", "bash", "make"))
    for passed in (5, 16, 20, 40):
        monkeypatch.setattr("time.monotonic", lambda passed=passed: began + passed)
        story.tick()

    assert stream.getvalue().splitlines() == ["● bash make", "  … bash make  16 s", "  … bash make  40 s"]


def test_when_the_model_is_asked_again_its_first_words_stay_apart_from_the_next() -> None:
    seen = _Seen(60, 10)

    for event in (TextDelta("half a "), WarningIssued("The connection broke."), TextDelta("a whole answer")):
        seen.tells(event)
    seen.tells(ModelMessage("a whole answer"))

    assert seen.looks() == ["half a", "! The connection broke.", "a whole answer"]


def test_a_call_that_ended_badly_says_why_in_one_line() -> None:
    told = _told(ToolCallFinished("c1", "bash", "cancelled", "ls", reason="not now"), WarningIssued("careful [x]"))

    assert told == "- bash ls  cancelled  not now\n! careful [x]\n"


def test_a_plan_is_told_as_a_checklist_whole() -> None:
    plan = [{"content": f"step {number}", "status": "pending"} for number in range(12)]

    told = _told(ToolCallFinished("c1", "todo_write", "success", "plan", "words", metadata={"todo": plan}))

    assert told.splitlines()[1:] == [f"  [ ] step {number}" for number in range(12)]


def test_a_declared_result_is_told_whole_and_plainly() -> None:
    answer = "".join(f"line {number}\n" for number in range(12)) + "\x1b[2J"

    told = _told(
        ToolCallFinished("c1", "attempt_completion", "success", "complete", answer, metadata={"answer": answer})
    )

    assert told.splitlines()[1:] == [*(f"line {number}" for number in range(12)), "\\x1b[2J"]


def test_tabs_in_an_output_are_room_and_no_escapes() -> None:
    assert "  │      1  x = 1\n" in _told(
        ToolCallFinished("call_a", "read_file", "success", output="     1\tx = 1\n")
    )
