"""The chat on a scripted session, in a pseudo-terminal."""

import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.pty_chat import PtyChat

pytestmark = pytest.mark.slow

_KEYS = "? help"
_STATUS = "scripted model · mode default"
_CTRL_C, _CTRL_D, _ESC = "\x03", "\x04", "\x1b"
_GO = (["start"], ["send", "go"])
_APPROVE_A = ["decide", "call-a", "approve", ""]


def _chat(scenario: str, folder: Path, **environment: str) -> PtyChat:
    chat = PtyChat(scenario, folder, None, **environment)
    chat.sees("> ")
    return chat


def _play(chat: PtyChat, *steps: str) -> tuple[int, list[list[Any]]]:
    """Take the steps and wait for the end; returns the exit code and the log of the session."""
    chat.plays(*steps)
    return chat.ends(), chat.log()


_LEAVE = f"^{_CTRL_D}"


@pytest.mark.parametrize(
    ("scenario", "steps", "code", "log"),
    [
        pytest.param(
            "talk", ("<hi", "hello [red]x[/]", _LEAVE), 0, [["start"], ["send", "hi"]], id="text is literal"
        ),
        pytest.param(
            "ask",
            ("<go", _KEYS, "<y", "2 of 2", _KEYS, _LEAVE),
            3,
            [*_GO, _APPROVE_A],
            id="Ctrl-D at a question keeps the given answers",
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
            "talk", ("</frobnicate", "Unknown command /frobnicate", "</quit"), 0, [["start"]], id="unknown command"
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

    assert _play(chat, _LEAVE) == (3, [*_GO, ["queue", "y"]])


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

    code, _ = _play(chat, "<go", "HIGH", "touch pwn #", _KEYS, _LEAVE)

    raw = [part in chat.output for part in ("\x1b[2K   command", "#\r", "\x1b[1A.txt")]
    colours = any(f"\x1b[{style}m" in chat.output for style in ("31", "32", "33", "36", "1;37;41", "0;36"))
    assert (code, raw, colours) == (3, [False] * 3, not no_color)


def test_a_dumb_terminal_gets_no_escape_byte(tmp_path: Path) -> None:
    chat = _chat("ask one", tmp_path, TERM="dumb")

    code, _ = _play(chat, "<go", _KEYS, "<y", "hello [red]x[/]", _LEAVE)

    assert (code, "\x1b" in chat.output) == (0, False)


def test_plain_mode_redraws_nothing_and_shows_the_same(tmp_path: Path) -> None:
    chat = _chat("short", tmp_path, GRAPH_AGENT_PLAIN="1")

    code, log = _play(chat, "<gox\x7f", "bash sleep 60", "exit code 3", _LEAVE)

    moves = re.findall(r"\x1b\[[0-9;]*[A-HJKSTf]|\r(?!\n)", chat.output)
    assert (code, moves, log) == (0, [], [*_GO])
