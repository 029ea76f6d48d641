import io
import os
import re
import sys
import time
from types import FrameType

import pytest
from rich.console import Console
from rich.text import Text

from graph_agent.calls import STOPPED_BY_USER
from graph_agent.cli.render.markdown import MarkdownStream
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.events import (
    Event,
    ModelMessage,
    SessionOpened,
    StepStarted,
    TextDelta,
    ToolCallCreated,
    ToolCallDecided,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    WarningIssued,
)
from tests.fakes.screen import Screen


def _shown(*events: Event) -> str:
    stream = io.StringIO()
    story = TurnDisplay(Console(file=stream, width=60, markup=False, highlight=False, emoji=False))
    for number, event in enumerate(events, 1):
        story(number, event)
    story.finish()
    return re.sub(r"\d+\.\d s", "N s", stream.getvalue())


_OUTPUT = "".join(f"line {number}\n" for number in range(1, 12))
_DIFF = {"diff": {"unified": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n", "added": 1, "removed": 1}}
_DIFF_LINES = ["     1 -x", "     1 +y"]
_PLAN = [{"content": f"step {number}", "status": "pending"} for number in range(12)]


@pytest.mark.parametrize(
    ("events", "lines"),
    [
        pytest.param(
            [TextDelta("[/a] "), TextDelta("b\x1b[2J"), ModelMessage("[/a] b\x1b[2J")],
            ["[/a] b\\x1b[2J"],
            id="streamed text is shown once",
        ),
        pytest.param([ModelMessage("one [bold]\ntwo")], ["one [bold]", "two"], id="a reply that did not stream"),
        pytest.param(
            [
                ToolCallCreated({"call_id": "c1", "tool_name": "bash", "summary": "seq 11"}),
                ToolCallStarted("c1", "bash", "seq 11", attempt=2),
                ToolCallProgress("c1", "shell_output", "line 1\n"),
                ToolCallFinished("c1", "bash", "success", "seq 11", _OUTPUT),
            ],
            [
                "● bash seq 11 (attempt 2)",
                "✓ bash seq 11  success N s",
                "  … 3 more lines; /calls c1 shows all",
                *(f"  │ line {number}" for number in range(4, 12)),
            ],
            id="a call at its start and end with the tail of its output",
        ),
        pytest.param(
            [ToolCallFinished("c1", "bash", "success", "make", outside_sandbox=True)],
            ["✓ bash make  success outside the sandbox"],
            id="a call outside the sandbox",
        ),
        pytest.param(
            [
                SessionOpened("t", "", "/w", OFFLINE_LABEL, "default"),
                ToolCallFinished("c1", "ls", "success", "ls .", "a.txt\n"),
                ModelMessage(".:\na.txt"),
            ],
            ["✓ ls .  success", ".:", "a.txt"],
            id="offline the answer has the output",
        ),
        pytest.param(
            [ToolCallFinished("c1", "write_file", "success", "a", "wrote a", metadata=_DIFF)],
            ["✓ write_file a  success", *_DIFF_LINES],
            id="a diff instead of words",
        ),
        pytest.param(
            [
                ToolCallDecided("c1", "approve", "you"),
                ToolCallFinished("c1", "write_file", "success", "a", metadata=_DIFF),
            ],
            ["✓ write_file a  success"],
            id="a change that was seen with its question",
        ),
        pytest.param(
            [ToolCallFinished("c1", "bash", "interrupted", "ls", "half\n", reason="outcome_unknown")],
            ["! bash ls  interrupted: outcome unknown"],
            id="the output of an interrupted call is left to its question",
        ),
        pytest.param(
            [
                ToolCallStarted("c1", "bash", "npm test -- --watch=false --reporter=spec"),
                ToolCallFinished(
                    "c1",
                    "bash",
                    "cancelled",
                    "npm test -- --watch=false --reporter=spec",
                    "one line of the output that is wider than the terminal is\n",
                    reason=f"{STOPPED_BY_USER}, may have partly run",
                    outcome="stopped",
                    decided_by="user",
                ),
            ],
            [
                "● bash npm test -- --watch=false --reporter=spec",
                "■ bash npm…  stopped by you after N s  may have partly run",
                "  │ one line of the output that is wider than the terminal",
                "  │ is",
            ],
            id="a call that was stopped takes one line, and its output is folded between words",
        ),
        pytest.param(
            [ToolCallFinished("c1", "bash", "cancelled", "ls", reason="not now"), WarningIssued("careful [x]")],
            ["- bash ls  cancelled  not now", "! careful [x]"],
            id="a reason and a warning",
        ),
        pytest.param(
            [
                ToolCallFinished(
                    "c1",
                    "bash",
                    "cancelled",
                    "ls",
                    reason="no",
                    outcome="rejected",
                    decided_by=f"pid {os.getpid()}",
                )
            ],
            ["⊘ bash ls  rejected by you  no"],
            id="a call that was rejected in this very chat",
        ),
        pytest.param(
            [ToolCallFinished("c1", "todo_write", "success", "plan", "words", metadata={"todo": _PLAN})],
            ["✓ todo_write plan  success", *(f"  [ ] step {number}" for number in range(12))],
            id="a whole plan as a checklist",
        ),
        pytest.param(
            [
                ToolCallFinished(
                    "c1", "attempt_completion", "success", "done", metadata={"answer": f"{_OUTPUT}\x1b[2J"}
                )
            ],
            ["✓ attempt_completion done  success", *_OUTPUT.splitlines(), "\\x1b[2J"],
            id="a declared result whole",
        ),
        pytest.param(
            [ToolCallFinished("c1", "read_file", "success", output="     1\tx = 1\n")],
            ["✓ read_file  success", "  │      1  x = 1"],
            id="tabs are room and no escapes",
        ),
    ],
)
def test_events_become_lines(events: list[Event], lines: list[str]) -> None:
    assert _shown(*events).splitlines() == lines


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
        assert not any("…" in line for line in seen.screen.lines)
        scrolled = seen.screen.scrolled
    seen.tells(ModelMessage(_ANSWER))
    seen.story.finish()

    told = MarkdownStream(Console(width=columns - 1, color_system=None))
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


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (120, "● 3 s · bash · esc to interrupt · 12% context · $0.04 · default · gpt-5-mini"),
        (80, "● 3 s · bash · esc to interrupt · 12% context · $0.04 · default · gpt-5-mini"),
        (60, "● 3 s · bash · esc to interrupt · 12% context · $0.04"),
        (30, "● 3 s · bash"),
    ],
)
def test_one_line_says_all_the_time_what_a_turn_does(
    monkeypatch: pytest.MonkeyPatch, columns: int, line: str
) -> None:
    seen, began = _Seen(columns, 10), time.monotonic()
    seen.story.begin(lambda: ["12% context", "$0.04", "default", "gpt-5-mini"])
    before_the_first_tick = seen.looks()
    seen.story.tick()
    at_first = seen.looks()
    seen.tells(TextDelta("what to do", "reasoning"))
    while_reasoning = seen.looks()
    seen.tells(TextDelta("Run the tests"))
    while_writing = seen.looks()
    seen.story(1, ModelMessage("Run the tests"))
    seen.story(1, ToolCallStarted("c1", "bash", "npm test"))
    monkeypatch.setattr("time.monotonic", lambda: began + 3.2)
    seen.tells(TextDelta("words\n\n"))
    seen.story.show_typed("typed", 5)
    during = seen.looks()
    seen.story.finish()

    before = [lines[-1].split(" · ")[1] for lines in (at_first, while_reasoning, while_writing)]
    assert before_the_first_tick == []
    assert (before, during[-2:]) == (["thinking", "thinking", "writing"], [line, "> typed"])
    assert seen.looks() == ["what to do", "Run the tests", "words"]


@pytest.mark.parametrize(
    ("piece", "shown"),
    [(TextDelta("Well"), "Well"), (ToolCallDelta(0, "bash", '{"command": "ls"}'), "bash (streaming)")],
    ids=["text", "call"],
)
def test_the_first_words_of_a_reply_are_drawn_at_once_and_the_next_with_the_next_frame(
    piece: TextDelta | ToolCallDelta, shown: str
) -> None:
    seen = _Seen(80, 24)
    seen.story.begin(lambda: ["default"])
    seen.story(1, StepStarted(1, 5))
    seen.looks()

    seen.story(2, piece)
    at_once, before = "\n".join(seen.looks()), seen.written
    seen.story(3, TextDelta(" then"))
    seen.looks()

    assert (shown in at_once, seen.written == before) == (True, True)


def test_a_token_costs_as_much_in_a_long_answer_as_in_a_short_one() -> None:
    seen, counts = _Seen(120, 40), list[tuple[int, int]]()
    tokens = ["The ", "worker ", "notes ", "**each** ", "attempt ", "in ", "the ", "`journal`", ".\n\n"] * 4

    for _ in range(20):
        calls, before = list[str](), seen.written
        sys.setprofile(lambda _frame, what, _arg: calls.append(what))  # noqa: B023 - called in this round alone
        for token in tokens:
            seen.story(1, TextDelta(token))
            seen.story.tick()
        sys.setprofile(None)
        seen.looks()
        counts.append((len(calls), seen.written - before))

    (early_calls, early_bytes), (late_calls, late_bytes) = counts[1], counts[-1]
    assert (late_calls <= 1.05 * early_calls, late_bytes <= 1.05 * early_bytes) == (True, True)
    assert late_bytes <= 25 * len(tokens)


@pytest.mark.slow
def test_there_is_no_frame_but_for_each_tick_however_fast_text_comes() -> None:
    seen, frames = _Seen(80, 24), 0
    seen.story.begin(lambda: ["default"])
    seen.looks()

    for number in range(1, 1001):
        seen.story(number, TextDelta(f"word {number}\n\n"))
        if number % 100 == 0:
            seen.story.tick()
        before = seen.written
        seen.looks()
        frames += seen.written != before

    assert (frames, "word 999" in seen.screen.lines) == (10, True)


def test_a_frame_of_the_status_line_a_running_call_and_a_typed_line_takes_little_work() -> None:
    seen, called = _Seen(80, 24), 0
    seen.story.begin(lambda: ["12% context", "$0.04", "default", "gpt-5-mini"])
    seen.story(1, ToolCallStarted("c1", "bash", "npm test"))
    seen.story(2, ToolCallProgress("c1", "shell_output", "41 passed\n"))
    seen.story.show_typed("typed", 5)

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    sys.setprofile(count)
    seen.story.tick()
    sys.setprofile(None)

    assert called < 2_000  # 1,250 take a third of a millisecond.


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
