"""The chat in real terminals of several sizes and kinds: what a person sees there, and what their keys do."""

import os
import re
import shutil
import time
from pathlib import Path

import pytest

from graph_agent.app.model_trial import red_square
from tests.fakes.openai_server import DELAY, TC, TCS, TXT
from tests.fakes.pty_chat import PtyChat
from tests.fakes.pty_program import PtyProgram
from tests.fakes.terminal_keys import KEYS
from tests.scenarios.command import Scripted, scripted, until

_CTRL_D, _CTRL_U, _ESC = "\x04", "\x15", "\x1b"
_AT_ONCE = 40
_TERM = {"TERM": "xterm-256color"}
_CLEAR = "x\x03"
"""Clears a line, also an empty one, and does not leave."""


def _sends_every_key(chat: PtyChat) -> None:
    keys = list(KEYS.values())
    for start in range(0, len(keys), _AT_ONCE):
        chat.types_at_once("".join(keys[start : start + _AT_ONCE]))
        chat.shows()  # A terminal whose output nobody reads takes no more keys.
    chat.types_at_once(_CTRL_U * 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "running"), [("stream", "streamed words"), ("slow", "tick [bold]"), ("ask one", "? help")]
)
def test_no_key_stops_a_turn_or_answers_a_question(tmp_path: Path, scenario: str, running: str) -> None:
    chat = PtyChat(scenario, tmp_path, (100, 24))
    chat.plays("> ", "<go")
    chat.shows(running)

    _sends_every_key(chat)
    chat.types("still here")
    chat.shows("still here", hides=["stopping", "answered"])
    chat.types(_ESC if scenario != "ask one" else _CTRL_D)
    if scenario != "ask one":
        chat.shows("Stopped.")
        chat.plays(f"^{_CLEAR}", f"^{_CTRL_D}")

    chat.ends()
    assert [entry[0] for entry in chat.log() if entry[0] in ("stop", "decide", "queue")] == (
        ["stop"] if scenario != "ask one" else []
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(["a\nb\nccc"], id="an unmarked paste"),
        pytest.param(["a\rb\rccc"], id="an unmarked paste with returns"),
        pytest.param(["a\\\r", "b\\\r", "ccc"], id="backslashes before Enter"),
        pytest.param(["a\x1b\rb\x1b[13;2uccc"], id="Alt-Enter and Shift-Enter"),
        pytest.param(["a\x1b[27;2;13~b\nccc"], id="Shift-Enter as xterm sends it and Ctrl-J"),
        pytest.param(["\x1b[200~a\rb\rccc\x1b[201~"], id="a paste"),
    ],
)
def test_several_lines_are_one_message_at_the_prompt_and_during_a_turn(tmp_path: Path, typed: list[str]) -> None:
    chat = PtyChat("short twice", tmp_path, (80, 24))
    chat.sees("> ")

    for last, seen in (("ccc", "sleep 60"), ("ddd", "queued: a")):
        for piece in typed:
            chat.types(piece.replace("ccc", last))
            if last == "ccc" and len(typed) > 1:
                time.sleep(0.2)  # The prompt has just begun: read together, the pieces would be a paste.
        # Read together with the Enter behind it, a paste would be lines that were typed ahead.
        chat.shows(last)
        chat.plays("^\r", seen)
    chat.shows("exit code 3")
    chat.plays(f"^{_CTRL_D}")

    chat.ends()
    assert [text for kind, *text in chat.log() if kind in ("send", "queue")][:2] == [["a\nb\nccc"], ["a\nb\nddd"]]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    ("typed", "log"),
    [
        pytest.param(["steer\x1b[13;5u"], [["queue", "steer", "urgent"]], id="kitty Ctrl-Enter"),
        pytest.param(["steer\x1b[27;5;13~"], [["queue", "steer", "urgent"]], id="xterm Ctrl-Enter"),
        pytest.param(["/now steer\nmore\r"], [["queue", "steer\nmore", "urgent"]], id="/now TEXT"),
        pytest.param(["steer\r", "/now\r"], [["queue", "steer"], ["mark urgent"]], id="/now"),
        pytest.param(["steer\r", "\x1b[13;5u"], [["queue", "steer"], ["mark urgent"]], id="Ctrl-Enter alone"),
    ],
)
def test_a_message_is_handed_to_the_running_turn(
    tmp_path: Path, columns: int, typed: list[str], log: list[list[str]]
) -> None:
    chat = PtyChat("slow", tmp_path, (columns, 24))
    chat.plays("> ", "<go")
    chat.shows("esc to interrupt")

    for line in typed:
        chat.types(line)
        chat.shows(": steer" if "steer" in line else "1 message for the next step", "1 queued")
    chat.types(_ESC)
    chat.shows("Stopped.")
    chat.plays(f"^{_CLEAR}", f"^{_CTRL_D}")

    chat.ends()
    assert [entry for entry in chat.log() if entry[0] in ("queue", "mark urgent")] == log
    assert max(map(len, chat.screen.lines)) <= columns


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("is_busy", [False, True])
def test_tasks_are_listed_stopped_and_shown(tmp_path: Path, columns: int, is_busy: bool) -> None:
    chat = PtyChat("tasks", tmp_path, (columns, 24))
    chat.shows("default", "1 in background")
    if is_busy:
        chat.types("go\r")
        chat.shows("esc to interrupt")

    chat.types("/tasks\r")
    lines = chat.shows("Tasks", "npm start", "find the callers", "s to stop", hides=["esc to interrupt"])
    chat.types("\x1b[B")
    chat.shows("› sub-agent")
    chat.types("s")
    chat.shows("› command", hides=["sub-agent"])
    chat.types("\r")
    chat.shows("sh1 · running for 12 s · $ npm start", "output of sh1 [red]", hides=["s to stop"])
    chat.types("typed")
    chat.shows("> typed", "1 in background", *(["esc to interrupt"] if is_busy else []))
    chat.types(_ESC if is_busy else "")
    chat.plays(*(["Stopped."] if is_busy else []), f"^{_CLEAR}", f"^{_CTRL_D}")

    chat.ends()
    assert max(map(len, [*lines, *chat.screen.lines])) <= columns
    assert [entry for entry in chat.log() if entry[0] == "stop task"] == [["stop task", "c7"]]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_vi_keys_edit_the_line_at_the_prompt_and_during_a_turn(tmp_path: Path, columns: int) -> None:
    chat = PtyChat("slow", tmp_path, (columns, 24), EDITING_MODE="VI")
    chat.shows("-- INSERT -- scripted model")

    for shown in ("> two", "stopping"):
        chat.types("one two")
        chat.shows("> one two", "-- INSERT --")
        chat.types(_ESC)
        chat.shows("-- NORMAL --")
        chat.types_at_once("0dw")
        chat.shows("> two", hides=["one", "stopping"])
        chat.types("A three" + _ESC)
        chat.shows("> two three", hides=["stopping"])
        if shown == "stopping":
            chat.types(_ESC)
            chat.shows("Stopped.", "> two three")
        else:
            chat.types("\r")
            chat.shows("esc to interrupt")
    chat.plays(f"^{_CLEAR}", f"^{_CTRL_D}")

    chat.ends()
    assert [entry for entry in chat.log() if entry[0] in ("send", "stop")] == [["send", "two three"], ["stop"]]


_SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a message": (("go\r",), ("> go", "hello [red]x[/]", "mode default")),
    "wide characters": (("日本語 🎉 é\x7f\x7f\x7f go",), ("> 日本語  go", "mode default")),
    "several lines": (("one\ntwo",), ("> one", "two", "mode default")),
    "a long paste": ((f"\x1b[200~{'line' + chr(10) * 30}\x1b[201~",), ("> [pasted 30 lines]",)),
    "Shift-Tab": (("\x1b[Z",), ("acceptEdits",)),
    "Shift-Tab again": (("\x1b[Z",), ("plan",)),
    "an unknown command": (("/modle\r",), ("Unknown command /modle. Did you mean /mode",)),
    "leaving": (("\x03",), ("Press Ctrl-C again to leave",)),
}
"""What is typed, and what is then on the screen."""


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_what_is_done_is_shown_in_a_terminal_of_any_width(tmp_path: Path, columns: int) -> None:
    chat = PtyChat("talk", tmp_path, (columns, 30))
    chat.shows("default")

    for name, (typed, shown) in _SHOWN.items():
        for piece in typed:
            chat.types(piece)
        lines = chat.shows(*shown)
        assert max(map(len, lines)) <= columns, name
        chat.types(_CLEAR)


_COMPLETED = (
    ("/", ("/help", "list the commands", "/model")),
    ("/rev", ("/review", "Look for mistakes")),
    ("/cmp", ("/compact", "compact the context; the history is kept")),
    ("/cmp\t", ("> /compact",)),
    ("/mo\x1b[B\x1b[B", ("> /model",)),
    ("/mode acc", ("acceptEdits", "edits in the workspace run unasked")),
    ("/theme \t", ("> /theme auto", "by the background of the terminal")),
    ("see @srpr", ("src/prices.py",)),
    ("see @pri\t and @prices.t", ("> see @src/prices.py and @prices.t", "test/prices.test.py")),
)
"""What is typed, and what is then on the line and in the menu."""


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_menu_of_what_completes_the_line_opens_while_typing_and_tab_and_arrows_choose(
    tmp_path: Path, columns: int
) -> None:
    with scripted(tmp_path, []) as command:
        for name in ("src/prices.py", "test/prices.test.py"):
            (command.workspace / name).parent.mkdir()
            (command.workspace / name).touch()
        (tmp_path / "home" / "commands").mkdir(parents=True)
        review = (
            "---\ndescription: Look for mistakes\nargument-hint: FILE [what to look for, in words]\n---\nRead $1\n"
        )
        (tmp_path / "home" / "commands" / "review.md").write_text(review)
        chat = PtyProgram(["-m", "graph_agent"], command.workspace, {**command.env, **_TERM}, (columns, 24))
        chat.shows("mode default")

        for typed, shown in _COMPLETED:
            first, *more = re.split(r"(?=\t|\x1b)", typed)
            chat.types(first)
            if more:
                time.sleep(0.5)  # The menu opens; a key that comes with the text is typed before it does.
                chat.types("".join(more))
            lines = chat.shows(*shown)
            assert max(map(len, lines)) <= columns
            chat.types(_CLEAR)
            chat.shows(hides=shown[-1:])
        chat.types("see @srpr")
        chat.shows("src/prices.py")
        chat.types("\x1b")
        chat.shows("> see @srpr", hides=["src/prices.py"])
        chat.types(f"{_CLEAR}{_CTRL_D}")
        chat.ends()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_status_line_names_what_the_user_runs_and_what_is_typed_meanwhile(tmp_path: Path, columns: int) -> None:
    chat = PtyChat("talk", tmp_path, (columns, 24), SHELL="/bin/sh")
    chat.shows("default")

    os.mkfifo(tmp_path / "pipe")
    chat.types(f"!echo first; read line < '{tmp_path}/pipe'; echo $line\r")
    chat.shows("s · $ echo first; read line < ", "… · esc to interrupt")
    chat.types("typed")
    lines = chat.shows("> typed")
    (tmp_path / "pipe").write_text("second\n")
    chat.shows("second", "> typed", "default", hides=["esc to interrupt"])

    assert [line.split(" ")[0] for line in lines[-3:]] == ["first", "●", ">"]
    assert max(map(len, lines)) <= columns


_VIEWS = (
    *(
        "help",
        "status",
        "doctor",
        "policy",
        "memory",
        "inspect",
        "tools",
        "calls",
        "history",
        "threads",
        "mcp",
        "context",
    ),
    *("cost", "diff", "modle", "rewind 9", "export no/such/folder/with/a/rather/long/name/of/its/own/out.html"),
)


def _shown_in_views(command: Scripted, columns: int) -> set[str]:
    """The words on the screen after all views of the chat; what differs between runs is gone."""
    chat = PtyProgram(["-m", "graph_agent", "-c"], command.workspace, {**command.env, **_TERM}, (columns, 200))
    chat.shows("mode default")
    chat.types("".join(f"/{view}\r" for view in _VIEWS))
    chat.shows("out.html': No")
    chat.types(_CTRL_D)
    chat.ends()
    text = re.sub(r"… shortened; in full: `[^`]*`", "", " ".join(chat.screen.lines))
    return set(re.sub(r"\d+", "0", text).split())


def _is_whole(word: str, words: set[str]) -> bool:
    """Whether the word, or a path of which these are whole parts, is among the words; a table may shorten it."""
    around = re.compile(rf"(?:.*/)?{re.escape(word)}{'' if word.endswith('/') else '(?:$)'}")
    return "…" in word or word in words or any(around.match(one) for one in words)


@pytest.mark.slow
def test_no_view_is_folded_within_a_word_at_any_width(tmp_path: Path) -> None:
    folder = tmp_path / "a-folder-with-a-rather-long-name" / "and-another-one-in-it"
    folder.mkdir(parents=True)
    with scripted(folder, [TC("c1", "ls", {"path": "."}), TXT("A reply.")]) as command:
        command("run", "look around", "--thread", "shop")
        # What is just now in one of the chats is some seconds ago in the next.
        words = _shown_in_views(command, 400) | {"just", "now", "0", "s", "min", "ago"}
        broken = {
            columns: [word for word in _shown_in_views(command, columns) if not _is_whole(word, words)]
            for columns in (60, 80, 120)
        }

    assert broken == {60: [], 80: [], 120: []}


@pytest.mark.slow
def test_the_status_line_and_what_is_typed_stay_in_place_while_the_terminal_is_resized(tmp_path: Path) -> None:
    chat = PtyChat("slow", tmp_path, (120, 30))
    chat.plays("> ", "<go")
    chat.shows("esc to interrupt · default · scripted model")
    chat.types("typed")
    chat.shows("> typed")

    for columns, rows in ((60, 20), (100, 10), (40, 30), (80, 24)):
        chat.resizes(columns, rows)
        lines = chat.shows("● ", "> typed")
        assert [line for line in lines[-2:] if line.startswith(("● ", "> typed"))] == lines[-2:]
        assert max(map(len, lines[-3:])) <= columns
    chat.types(_ESC)
    chat.shows("Stopped.", "> typed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "missing"),
    [({"TERM": "dumb"}, "\x1b"), ({"NO_COLOR": "1"}, "\x1b[36m"), ({"GRAPH_AGENT_PLAIN": "1"}, "\x1b[A")],
)
def test_plain_terminals_get_what_they_understand(
    tmp_path: Path, environment: dict[str, str], missing: str
) -> None:
    chat = PtyChat("short twice", tmp_path, (80, 24), **environment)

    chat.plays("> ", "<go", "sleep 60", "<later", "queued: later", "exit code 3", "hello")
    chat.types(_CTRL_D)

    assert (chat.ends(), missing in chat.output) == (0, False)
    assert re.search("esc to interrupt", chat.output) is None or "NO_COLOR" in environment


_QUESTIONS = (
    ("HIGH · deletes build, uses the network: curl", "y run", "\x1b[C\r"),
    ("edit_file prices.py  +1 −1", "y run", "y\r"),
    ("1. add shipping to total()", "y start · a", "a\r"),
    ("outcome unknown", "r retry", "c\r"),
)
"""A line of each page, how its keys begin, and the keys that answer it."""


def _asks(chat: PtyChat, shown: str, keys: str, *, times: int) -> list[str]:
    """Wait until the keys were shown so often below a page, and nothing is typed yet; returns page and keys."""
    while True:
        lines = chat.shows(shown)
        page = lines[next(number for number, line in enumerate(lines) if shown in line) :]
        if sum(line.startswith(keys) for line in page) == times and page[-1].endswith(" ›"):
            return page


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_question_takes_ten_lines_its_keys_take_one_and_enter_alone_answers_none(
    tmp_path: Path, columns: int
) -> None:
    chat = PtyChat("questions", tmp_path, (columns, 24))
    chat.plays("> ", "<go")

    for shown, keys, answer in _QUESTIONS:
        page = _asks(chat, shown, keys, times=1)
        assert len(page) <= (10 if columns >= 80 else 12)
        chat.types("\r")
        page = _asks(chat, shown, keys, times=2)
        assert any("one of these keys" in line for line in page)
        chat.types("?\r")
        page = _asks(chat, shown, keys, times=3)
        assert any("explain the keys" in line for line in page)
        assert max(map(len, page)) <= columns
        chat.types(answer)

    chat.plays("hello", f"^{_CTRL_D}")
    chat.ends()
    decided = [entry[1:3] for entry in chat.log() if entry[0] == "decide"]
    assert decided == [["call-h", "approve"], ["call-e", "approve"], ["call-p", "answer"], ["call-b", "cancel"]]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_several_calls_are_a_list_from_which_one_is_chosen_or_all_are_answered(
    tmp_path: Path, columns: int
) -> None:
    chat = PtyChat("ask several", tmp_path, (columns, 40))
    chat.plays("> ", "<go")

    lines = chat.shows("3 calls need approval", "  2  edit_file prices.py  +1", "1 of 3 · bash", "Y run all 3")
    assert max(map(len, lines)) <= columns
    assert [line for line in lines if "›" in line] == lines[-1:]
    chat.types("\x1b[B")
    assert max(map(len, chat.shows("Enter shows 2: edit_file", hides=["Y run all 3"]))) <= columns
    chat.types("\r")
    chat.shows("2 of 3 · edit_file prices.py")
    chat.types("n\r")
    chat.shows("3 of 3 · bash", "Y run all 2")
    chat.types("Y\r")
    chat.plays("hello", f"^{_CTRL_D}")

    chat.ends()
    decided = [entry[1:3] for entry in chat.log() if entry[0] == "decide"]
    assert decided == [["call-e", "reject"], ["call-h", "approve"], ["call-a", "approve"]]


_LEFT = "Left open. Enter asks again"
_GONE_BACK = (
    ("a\r", "t this thread", _ESC, 0),
    ("a\r", "t this thread", "n\r", 0),
    ("a\r", "t this thread", "\rq\r", 0),
    ("r\r", "Feedback:", f"not{_ESC}", 0),
    ("r\r", "Feedback:", "\x03", 0),
    ("e\r", "These are your edited arguments", _ESC, 2),
    ("y", "? help › y", "\x03", 0),
    ("\x1b[B", "Enter shows 2: edit_file", _ESC, 0),
    ("Y\r", "One answer for the 3 calls shown", _ESC, 1),
)
"""What opens something at a question and what it shows; what leaves it, and how often the page comes again then."""


def _awaits(chat: PtyChat, text: str, times: int, *, last: str = "") -> None:
    """Wait until so many lines hold the text, and the last line ends like this."""

    def is_shown() -> bool:
        lines = chat.shows(text)
        return sum(text in line for line in lines) >= times and lines[-1].endswith(last)

    until(is_shown)


@pytest.mark.slow
def test_escape_and_ctrl_c_go_back_to_the_question_and_from_there_to_the_prompt(tmp_path: Path) -> None:
    editor, pages = tmp_path / "editor.sh", 1
    editor.write_text('#!/bin/sh\necho \'{"command": "ls"}\' > "$1"\n')
    editor.chmod(0o755)
    chat = PtyChat("ask several", tmp_path, (80, 100), VISUAL=str(editor))
    chat.plays("> ", "<go")

    for opens, shown, leaves, more in _GONE_BACK:
        _awaits(chat, "1 of 3", pages, last="? help ›")
        before = sum(shown in line for line in chat.screen.lines)
        chat.types(opens)
        _awaits(chat, shown, before + 1)
        chat.types(leaves)
        pages += more
    for left_by, sent in ((_ESC, "and later"), ("\x03", "")):
        _awaits(chat, "1 of 3", pages, last="? help ›")
        chat.types(left_by)
        chat.shows(_LEFT, *(["Press Ctrl-C again to leave"] if left_by != _ESC else []))
        chat.types(f"{sent}\r")
        pages += 1
    _awaits(chat, "1 of 3", pages, last="? help ›")
    chat.types("\x03")
    _awaits(chat, _LEFT, 3)
    chat.types("\x03")

    assert chat.ends() == 3
    assert "3 approvals are still pending; nothing was run." in chat.output
    assert [entry for entry in chat.log() if entry[0] in ("stop", "decide", "queue")] == [["queue", "and later"]]


_LESS = pytest.param(
    {"PAGER": ""}, marks=pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed"), id="less"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        _LESS,
        pytest.param({"PAGER": "cat"}, id="cat"),
        pytest.param({"PAGER": "/no/pager"}, id="none"),
        pytest.param({"TERM": "dumb"}, id="dumb"),
    ],
)
def test_a_long_change_is_viewed_whole_before_it_can_be_approved(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    chat = PtyChat("ask long", tmp_path, (80, 24), **environment)
    chat.plays("> ", "<go", "463 lines not shown", "v view all", "<y", "You have not seen all of it: v views it.")
    chat.plays("v view all", "<v")
    if environment.get("PAGER") == "":
        chat.plays("entry 0", "^G", "entry 499", "^q")
    while chat.sees_one_of("Enter continues", "y run · e edit") == 0:
        chat.types("\r")

    chat.plays("? help", "<y", "hello", f"^{_CTRL_D}")

    is_in_less = environment.get("PAGER") == ""
    assert (chat.ends(), is_in_less or "entry 250" in chat.output, "0 \x1b[2J" in chat.output) == (0, True, False)
    assert ["decide", "call-l", "approve", ""] in chat.log()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_tmux_keys_and_screen_are_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    inner = PtyChat.command_line("slow", log)
    chat = PtyProgram(
        ["-S", str(tmp_path / "socket"), "-f", "/dev/null", "new-session", inner], Path.cwd(), {}, (80, 24), "tmux"
    )
    chat.shows("mode default")

    chat.types("one\ntwo")
    chat.shows("> one", "two")
    chat.types("\r")
    chat.shows("esc to interrupt")
    chat.types("\x1bb\x1b[1;5Dstill")
    chat.shows("> still", hides=["stopping"])
    chat.types("\x1b")
    chat.shows("Stopped.")
    chat.types("\x15\x04")
    chat.ends()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "notify", "notified"),
    [
        (60, "osc9", "\x1b]9;approval needed in workspace\x07"),
        (80, "osc777", "\x1b]777;notify;graph-agent;approval needed in workspace\x07"),
        (120, "bell", "\a"),
    ],
)
def test_who_looks_elsewhere_is_notified_and_the_title_is_restored(
    tmp_path: Path, columns: int, notify: str, notified: str
) -> None:
    title, restored = "\x1b[22;2t\x1b]2;approval needed - graph-agent\x07", "\x1b]2;\x07\x1b[23;2t"
    replies = [DELAY(0.5, TCS(("c1", "bash", {"command": "touch x"}))), TXT("bye")]
    with scripted(tmp_path, replies, settings=f'notify = "{notify}"\n') as command:
        chat = PtyProgram(["-m", "graph_agent"], command.workspace, {**command.env, **_TERM}, (columns, 24))
        chat.shows("mode default")
        chat.types("go\r")
        chat.shows("esc to interrupt")
        chat.types("\x1b[O")
        chat.shows("touch x")
        before = chat.output
        chat.types("\x1b[I")
        until(lambda: bool(chat.shows("touch x")) and restored in chat.output)
        chat.types("n\r")
        chat.shows("bye")
        chat.types(_CTRL_D)
        code = chat.ends()

    assert (code, f"{title}{notified}" in before, restored in before) == (0, True, False)
    assert (chat.output.count(title), chat.output.count(restored)) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_images_are_attached_from_the_clipboard_and_by_dropping_them(tmp_path: Path, columns: int) -> None:
    shot, programs = tmp_path / "my shot.png", tmp_path / "programs"
    shot.write_bytes(red_square())
    programs.mkdir()
    (programs / "wl-paste").write_text(f"#!/bin/sh\nexec cat '{shot}'\n")
    (programs / "wl-paste").chmod(0o755)
    with scripted(tmp_path, [DELAY(1.0, TXT("red")), TXT("blue")]) as command:
        environment = {**command.env, **_TERM, "PATH": f"{programs}:{command.env['PATH']}"}
        chat = PtyProgram(["-m", "graph_agent"], command.workspace, environment, (columns, 24))
        chat.shows("mode default")
        chat.types("see \x16")
        chat.shows("> see [image 1: clipboard.png, 32x32]")
        chat.types(f"\x1b[200~'{shot}' \x1b[201~")
        chat.shows("[image 2:", hides=["my shot.png'"])
        chat.types("\x7f\r")
        chat.shows("esc to interrupt")
        chat.types("\x16")
        chat.shows("> [image 3: clipboard.png, 32x32]")
        chat.types("\x7fthen\x16")
        chat.shows("> then[image 4: clipboard.png, 32x32]")
        chat.types("\r")
        chat.shows("red", "blue")
        chat.types(_CTRL_D)
        chat.ends()
        sent = [body["messages"][-1]["content"] for body in command.server.bodies]

    assert not any("esc to interrupt" in line for line in chat.screen.lines)
    assert [[part["type"] for part in parts] for parts in sent] == [["text", "image_url"]] * 2
    assert [parts[0]["text"].split("\n")[0].rstrip() for parts in sent] == [
        "see [image 1: clipboard.png, 32x32]",
        "then[image 4: clipboard.png, 32x32]",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "theme", "background", "color"),
    [
        (60, "auto", "1e1e/1e1e/2e2e", 81),
        (80, "auto", "ffff/ffff/ffff", 24),
        (120, "high-contrast", "ff/ff/ff", 17),
    ],
)
def test_the_colours_go_by_the_background_and_an_answer_between_keys_loses_none(
    tmp_path: Path, columns: int, theme: str, background: str, color: int
) -> None:
    with scripted(tmp_path, [TXT("`code`")], settings=f'theme = "{theme}"\n') as command:
        environment = {**command.env, **_TERM}
        chat = PtyProgram(["-m", "graph_agent"], command.workspace, environment, (columns, 24))
        chat.shows("mode default")
        chat.types(f"he\x1b]11;rgb:{background}\x1b\\llo")
        chat.shows("> hello")
        chat.types("\r")
        chat.shows("code", hides=["esc to interrupt"])
        chat.types(_CTRL_D)
        code = chat.ends()

    assert (code, chat.output.count("\x1b]11;?\x1b\\")) == (0, 1)
    assert f"38;5;{color}mcode" in chat.output
    assert f"38;5;{color}m> " in chat.output
