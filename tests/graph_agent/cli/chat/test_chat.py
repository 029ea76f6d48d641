"""The chat on a scripted session, in a pseudo-terminal."""

import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.pty_chat import PtyChat

pytestmark = pytest.mark.slow

_KEYS = "[s]top the turn > "
_RECOVERY_KEYS = "[c]ancel > "
_STATUS = "scripted model · mode default"
_PASTE = "\x1b[200~line1\nline2\n/line3\x1b[201~"
_CTRL_C, _CTRL_D, _ESC = "\x03", "\x04", "\x1b"
_GO = (["start"], ["send", "go"])
_APPROVE_A = ["decide", "call-a", "approve", ""]
_REJECT_A = ["decide", "call-a", "reject", ""]


def _chat(scenario: str, folder: Path, **environment: str) -> PtyChat:
    chat = PtyChat(scenario, folder, **environment)
    if scenario != "recover":
        chat.sees("> ")
    return chat


def _play(chat: PtyChat, *steps: str) -> tuple[int, list[list[Any]]]:
    """Take the steps and wait for the end; returns the exit code and the log of the session.

    A step that begins with `<` is entered, one that begins with `^` is typed; any other is waited for.
    """
    for step in steps:
        match step[:1]:
            case "<":
                chat.enters(step[1:])
            case "^":
                chat.types(step[1:])
            case _:
                chat.sees(step)
    return chat.ends(), chat.log()


_LEAVE = f"^{_CTRL_D}"


@pytest.mark.parametrize(
    ("scenario", "steps", "code", "log"),
    [
        pytest.param(
            "talk",
            ("<hi", "hello [red]x[/]", _LEAVE),
            0,
            [["start"], ["send", "hi"]],
            id="text is literal",
        ),
        pytest.param(
            "talk",
            (f"^{_PASTE}", "<", "hello", _LEAVE),
            0,
            [["start"], ["send", "line1\nline2\n/line3"]],
            id="a paste of lines is one message and no command",
        ),
        pytest.param(
            "ask",
            (
                *("<go", "1 of 2", "echo a >> log.txt", _KEYS, "<y"),
                *("2 of 2", "echo b >> log.txt", _KEYS, "<r", "Reason: ", "<not now", "hello", _LEAVE),
            ),
            0,
            [*_GO, _APPROVE_A, ["decide", "call-b", "reject", "not now"], ["proceed"]],
            id="every call is decided before the graph continues",
        ),
        pytest.param(
            "ask one",
            ("<go", _KEYS, "<yy", "Please answer", "<", "Please answer", "<n", "hello", _LEAVE),
            0,
            [*_GO, _REJECT_A, ["proceed"]],
            id="a typo and an empty line are asked again",
        ),
        pytest.param(
            "ask",
            ("<go", _KEYS, "<y", "2 of 2", _KEYS, f"^{_CTRL_C}"),
            3,
            [*_GO, _APPROVE_A],
            id="Ctrl-C at a question keeps the given answers",
        ),
        pytest.param(
            "ask",
            ("<go", _KEYS, "<y", "2 of 2", _KEYS, _LEAVE),
            3,
            [*_GO, _APPROVE_A],
            id="Ctrl-D at a question keeps the given answers",
        ),
        pytest.param(
            "recover",
            (_RECOVERY_KEYS, f"^{_CTRL_C}"),
            4,
            [["start"]],
            id="leaving a recovery question",
        ),
        pytest.param(
            "recover",
            (
                *("make deploy", "uploading 1 of 3", "cannot tell", _RECOVERY_KEYS),
                *("<d", "sent to the model) ", "<all three are up", "hello", _LEAVE),
            ),
            0,
            [["start"], ["decide", "call-a", "done", "all three are up"], ["proceed"]],
            id="a recovery question shows what is known and takes a result",
        ),
        pytest.param(
            "ask",
            ("<go", _KEYS, "<s", "Stopped.", _LEAVE),
            0,
            [*_GO, ["stop"]],
            id="the answer stop stops the turn",
        ),
        *(
            pytest.param(
                "slow",
                ("<go", "tick [bold]", f"^{key}", "Stopped.", "<never mind", "hello", _LEAVE),
                0,
                [*_GO, ["stop"], ["send", "never mind"]],
                id=f"{name} stops the turn and the next message is sent",
            )
            for name, key in (("Ctrl-C", _CTRL_C), ("Esc", _ESC))
        ),
        pytest.param(
            "talk",
            (_STATUS, "^half a thought", "half a thought", f"^{_CTRL_C}{_CTRL_C}", "to leave", f"^{_CTRL_C}"),
            0,
            None,  # the session may still be loading when the chat is left
            id="Ctrl-C clears the line, and leaves when pressed twice on an empty one",
        ),
        pytest.param(
            "talk",
            ("</frobnicate", "Unknown command /frobnicate", "</quit"),
            0,
            [["start"]],
            id="unknown command",
        ),
        pytest.param(
            "short",
            ("<go", "exit code 3", "[/'A', 1] [red]x[/]", "</retry", "There is nothing to retry", _LEAVE),
            0,
            [*_GO, ["continue"]],
            id="with every turn answered there is nothing to retry",
        ),
        pytest.param(
            "model error",
            ("<go", "bad [/tag]", "/retry to try again", "</retry", "hello", _LEAVE),
            0,
            [*_GO, ["continue"]],
            id="after an error of the model the turn can be retried",
        ),
    ],
)
def test_a_chat(
    tmp_path: Path, scenario: str, steps: tuple[str, ...], code: int, log: list[list[str]] | None
) -> None:
    ended, played = _play(_chat(scenario, tmp_path), *steps)

    assert (ended, played if log is not None else None) == (code, log)


def test_a_message_typed_before_the_first_prompt_is_sent(tmp_path: Path) -> None:
    chat = PtyChat("talk", tmp_path)

    assert _play(chat, "<early", "hello [red]x[/]", _LEAVE) == (0, [["start"], ["send", "early"]])
    assert "Resume with: graph-agent resume thread-1" in chat.output


def test_keys_typed_before_the_question_appeared_are_no_answer(tmp_path: Path) -> None:
    chat = _chat("think then ask", tmp_path)

    chat.enters("go")
    time.sleep(0.4)
    chat.plays("<y", _KEYS)
    time.sleep(0.4)

    assert _play(chat, f"^{_CTRL_C}") == (3, [*_GO, ["queue", "y"]])


def test_a_question_answered_elsewhere_disappears_saying_by_whom(tmp_path: Path) -> None:
    chat = _chat("ask one", tmp_path)

    chat.plays("<go", _KEYS)
    chat.elsewhere.write_text('{"call-a": "reject"}')

    assert _play(chat, "answered by cli pid 99: no", "hello", _LEAVE) == (0, [*_GO, ["proceed"]])


@pytest.mark.parametrize(
    ("number", "code", "action"),
    [(signal.SIGINT, 0, "stop"), (signal.SIGTERM, 143, "suspend"), (signal.SIGHUP, 129, "suspend")],
)
def test_an_interrupt_signal_stops_the_turn_and_a_termination_suspends_it(
    tmp_path: Path, number: int, code: int, action: str
) -> None:
    chat = _chat("slow", tmp_path)

    chat.plays("<go", "tick [bold]")
    chat.signals(number)

    assert _play(chat, *(("Stopped.", _LEAVE) if code == 0 else ())) == (code, [*_GO, [action]])
    assert "Resume with: graph-agent resume thread-1" in chat.output


def test_a_lost_terminal_suspends_the_turn(tmp_path: Path) -> None:
    chat = _chat("slow", tmp_path)

    chat.plays("<go", "tick [bold]")
    chat.hangs_up()

    assert chat.log() == [*_GO, ["suspend"]]


def test_a_termination_at_the_prompt_ends_with_143(tmp_path: Path) -> None:
    chat = _chat("talk", tmp_path)

    chat.sees(_STATUS)
    chat.signals(signal.SIGTERM)

    assert chat.ends() == 143


@pytest.mark.parametrize("no_color", ["", "1"])
def test_nothing_of_the_arguments_reaches_the_terminal_raw_and_no_color_leaves_out_colours(
    tmp_path: Path, no_color: str
) -> None:
    chat = _chat("spoof", tmp_path, NO_COLOR=no_color)

    code, _ = _play(chat, "<go", "HIGH risk", "touch pwn #", _KEYS, f"^{_CTRL_C}")

    raw = [part in chat.output for part in ("\x1b[2K   command", "#\r", "\x1b[1A.txt")]
    colours = any(f"\x1b[{style}m" in chat.output for style in ("31", "32", "33", "36", "1;37;41", "0;36"))
    assert (code, raw, colours) == (3, [False] * 3, not no_color)


def test_edited_arguments_are_shown_again_and_a_refused_edit_leaves_the_question_open(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/echo a/echo edited/' \"$1\"\n")
    editor.chmod(0o700)
    chat = _chat("ask one", tmp_path, VISUAL="", EDITOR=str(editor))

    code, log = _play(
        chat,
        *("<go", _KEYS, "<e", "the command is empty", _KEYS),
        *("<e", "echo edited >> log.txt", "your edited arguments", _KEYS, "<y", "hello", _LEAVE),
    )

    edited = '{"command": "echo edited >> log.txt"}'
    assert (code, log[2:]) == (0, [["decide", "call-a", "edit", "", edited], ["proceed"]])


def test_a_dumb_terminal_gets_no_escape_byte(tmp_path: Path) -> None:
    chat = _chat("ask one", tmp_path, TERM="dumb")

    code, _ = _play(chat, "<go", _KEYS, "<y", "hello [red]x[/]", _LEAVE)

    assert (code, "\x1b" in chat.output) == (0, False)


def test_plain_mode_redraws_nothing_and_shows_the_same(tmp_path: Path) -> None:
    chat = _chat("short", tmp_path, GRAPH_AGENT_PLAIN="1")

    code, log = _play(chat, "<gox\x7f", "bash sleep 60", "exit code 3", _LEAVE)

    moves = re.findall(r"\x1b\[[0-9;]*[A-HJKSTf]|\r(?!\n)", chat.output)
    assert (code, moves, log) == (0, [], [*_GO])
