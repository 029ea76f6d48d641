import re
import signal
import time
from pathlib import Path

import pytest

from tests.fakes.pty_chat import PtyChat

_KEYS = "[s]top the turn > "
_PASTE = "\x1b[200~line1\nline2\n/line3\x1b[201~"
_CTRL_C, _CTRL_D, _ESC = "\x03", "\x04", "\x1b"


def _chat(scenario: str, folder: Path, **environment: str) -> PtyChat:
    chat = PtyChat(scenario, folder, **environment)
    if scenario != "recover":
        chat.sees("> ")
    return chat


def test_streamed_text_appears_literally_and_ctrl_d_leaves_with_code_0(tmp_path: Path) -> None:
    chat = _chat("talk", tmp_path)

    chat.enters("hi")
    chat.sees("hello [red]x[/]")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "hi"]])
    assert "go on with: graph-agent resume thread-1" in chat.output


def test_a_message_typed_before_the_first_prompt_is_not_lost(tmp_path: Path) -> None:
    chat = PtyChat("talk", tmp_path)

    chat.enters("early")
    chat.sees("hello [red]x[/]")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "early"]])


def test_a_pasted_text_of_several_lines_is_one_message_and_no_command(tmp_path: Path) -> None:
    chat = _chat("talk", tmp_path)

    chat.types(_PASTE)
    chat.types("\r")
    chat.sees("hello")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "line1\nline2\n/line3"]])


def test_every_call_is_asked_and_answered_before_the_graph_goes_on(tmp_path: Path) -> None:
    chat = _chat("ask", tmp_path)

    chat.enters("go")
    chat.sees("1 of 2")
    chat.sees("echo a >> log.txt")
    chat.sees(_KEYS)
    chat.enters("y")
    chat.sees("2 of 2")
    chat.sees("echo b >> log.txt")
    chat.sees(_KEYS)
    chat.enters("r")
    chat.sees("Reason: ")
    chat.enters("not now")
    chat.sees("hello")
    chat.types(_CTRL_D)

    assert chat.ends() == 0
    assert chat.log() == [
        ["start"],
        ["send", "go"],
        ["decide", "call-a", "approve", ""],
        ["decide", "call-b", "reject", "not now"],
        ["proceed"],
    ]


def test_a_typo_and_an_empty_line_are_asked_again(tmp_path: Path) -> None:
    chat = _chat("ask one", tmp_path)

    chat.enters("go")
    chat.sees(_KEYS)
    chat.enters("yy")
    chat.sees("Please answer with one of")
    chat.enters("")
    chat.sees("Please answer with one of")
    chat.enters("n")
    chat.sees("hello")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()[2:]) == (0, [["decide", "call-a", "reject", ""], ["proceed"]])


def test_keys_typed_before_the_question_appeared_are_no_answer(tmp_path: Path) -> None:
    chat = _chat("think then ask", tmp_path)

    chat.enters("go")
    time.sleep(0.4)
    chat.enters("y")
    chat.sees(_KEYS)
    time.sleep(0.4)
    chat.types(_CTRL_C)

    assert (chat.ends(), chat.log()) == (3, [["start"], ["send", "go"], ["queue", "y"]])


@pytest.mark.parametrize("key", [_CTRL_C, _CTRL_D])
def test_leaving_at_a_question_keeps_the_given_answers_and_ends_with_3(tmp_path: Path, key: str) -> None:
    chat = _chat("ask", tmp_path)

    chat.enters("go")
    chat.sees(_KEYS)
    chat.enters("y")
    chat.sees("2 of 2")
    chat.sees(_KEYS)
    chat.types(key)

    assert (chat.ends(), chat.log()) == (3, [["start"], ["send", "go"], ["decide", "call-a", "approve", ""]])


def test_leaving_at_a_recovery_question_ends_with_4(tmp_path: Path) -> None:
    chat = _chat("recover", tmp_path)

    chat.sees("[c]ancel > ")
    chat.types(_CTRL_C)

    assert (chat.ends(), chat.log()) == (4, [["start"]])


def test_the_recovery_dialogue_shows_what_is_known_and_takes_a_result(tmp_path: Path) -> None:
    chat = _chat("recover", tmp_path)

    chat.sees("make deploy")
    chat.sees("uploading 1 of 3")
    chat.sees("cannot tell")
    chat.sees("[c]ancel > ")
    chat.enters("d")
    chat.sees("The model is told: ")
    chat.enters("all three are up")
    chat.sees("hello")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (
        0,
        [["start"], ["decide", "call-a", "done", "all three are up"], ["proceed"]],
    )


def test_the_answer_stop_stops_the_turn_and_prompts_again(tmp_path: Path) -> None:
    chat = _chat("ask", tmp_path)

    chat.enters("go")
    chat.sees(_KEYS)
    chat.enters("s")
    chat.sees("Stopped.")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "go"], ["stop"]])


def test_a_question_answered_elsewhere_disappears_saying_by_whom(tmp_path: Path) -> None:
    chat = _chat("ask one", tmp_path)

    chat.enters("go")
    chat.sees(_KEYS)
    chat.elsewhere.write_text('{"call-a": "reject"}')
    chat.sees("answered by cli pid 99: no")
    chat.sees("hello")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "go"], ["proceed"]])


@pytest.mark.parametrize("key", [_CTRL_C, _ESC])
def test_a_stop_key_ends_the_turn_and_what_is_typed_next_is_the_next_message(tmp_path: Path, key: str) -> None:
    chat = _chat("slow", tmp_path)

    chat.enters("go")
    chat.sees("tick [bold]")
    chat.types(key)
    chat.sees("Stopped.")
    chat.enters("never mind")
    chat.sees("hello")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "go"], ["stop"], ["send", "never mind"]])


def test_an_interrupt_signal_from_outside_stops_the_turn_too(tmp_path: Path) -> None:
    chat = _chat("slow", tmp_path)

    chat.enters("go")
    chat.sees("tick [bold]")
    chat.signals(signal.SIGINT)
    chat.sees("Stopped.")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "go"], ["stop"]])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_termination_suspends_the_turn_and_says_how_to_go_on(tmp_path: Path, number: int, code: int) -> None:
    chat = _chat("slow", tmp_path)

    chat.enters("go")
    chat.sees("tick [bold]")
    chat.signals(number)

    assert (chat.ends(), chat.log()) == (code, [["start"], ["send", "go"], ["suspend"]])
    assert "go on with: graph-agent resume thread-1" in chat.output


def test_a_lost_terminal_suspends_the_turn(tmp_path: Path) -> None:
    chat = _chat("slow", tmp_path)

    chat.enters("go")
    chat.sees("tick [bold]")
    chat.hangs_up()

    assert chat.log() == [["start"], ["send", "go"], ["suspend"]]


def test_a_termination_at_the_prompt_ends_with_143(tmp_path: Path) -> None:
    chat = _chat("talk", tmp_path)

    chat.sees("scripted model · mode default")
    chat.signals(signal.SIGTERM)

    assert chat.ends() == 143


def test_ctrl_c_at_an_empty_prompt_leaves_only_when_it_comes_twice(tmp_path: Path) -> None:
    chat = _chat("talk", tmp_path)

    chat.sees("scripted model · mode default")
    chat.types("half a thought")
    chat.sees("half a thought")
    chat.types(_CTRL_C)
    chat.types(_CTRL_C)
    chat.sees("Ctrl-C again leaves")
    chat.types(_CTRL_C)

    assert chat.ends() == 0


def test_nothing_of_the_arguments_reaches_the_terminal_raw(tmp_path: Path) -> None:
    chat = _chat("spoof", tmp_path)

    chat.enters("go")
    chat.sees("HIGH risk")
    chat.sees("touch pwn #")
    chat.sees(_KEYS)
    chat.types(_CTRL_C)

    assert chat.ends() == 3
    assert "\x1b[2K   command" not in chat.output
    assert "#\r" not in chat.output
    assert "\x1b[1A.txt" not in chat.output


def test_call_output_and_provider_errors_appear_literally(tmp_path: Path) -> None:
    calls, errors = tmp_path / "calls", tmp_path / "errors"
    calls.mkdir()
    errors.mkdir()

    chat = _chat("short", calls)
    chat.enters("go")
    chat.sees("[/'A', 1] [red]x[/]")
    chat.types(_CTRL_D)
    failing = _chat("model error", errors)
    failing.enters("go")
    failing.sees("bad [/tag]")
    failing.sees("/retry asks it again")
    failing.enters("/retry")
    failing.sees("hello")
    failing.types(_CTRL_D)

    assert (chat.ends(), failing.ends(), failing.log()) == (0, 0, [["start"], ["send", "go"], ["continue"]])


def test_edited_arguments_are_shown_again_and_a_refused_edit_leaves_the_question_open(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/echo a/echo edited/' \"$1\"\n")
    editor.chmod(0o700)
    chat = _chat("ask one", tmp_path, VISUAL="", EDITOR=str(editor))

    chat.enters("go")
    chat.sees(_KEYS)
    chat.enters("e")
    chat.sees("the command is empty")
    chat.sees(_KEYS)
    chat.enters("e")
    chat.sees("echo edited >> log.txt")
    chat.sees("your edited arguments")
    chat.sees(_KEYS)
    chat.enters("y")
    chat.sees("hello")
    chat.types(_CTRL_D)

    edited = '{"command": "echo edited >> log.txt"}'
    assert (chat.ends(), chat.log()[2:]) == (0, [["decide", "call-a", "edit", "", edited], ["proceed"]])


def test_an_unknown_slash_command_says_so_and_sends_nothing(tmp_path: Path) -> None:
    chat = _chat("talk", tmp_path)

    chat.enters("/frobnicate")
    chat.sees("/frobnicate is no command here")
    chat.enters("/quit")

    assert (chat.ends(), chat.log()) == (0, [["start"]])


def test_a_dumb_terminal_gets_no_escape_byte(tmp_path: Path) -> None:
    chat = _chat("ask one", tmp_path, TERM="dumb")

    chat.enters("go")
    chat.sees(_KEYS)
    chat.enters("y")
    chat.sees("hello [red]x[/]")
    chat.types(_CTRL_D)

    assert (chat.ends(), "\x1b" in chat.output) == (0, False)


def test_plain_mode_draws_nothing_anew_and_says_all_the_same(tmp_path: Path) -> None:
    chat = _chat("short", tmp_path, GRAPH_AGENT_PLAIN="1")

    chat.enters("gox\x7f")
    chat.sees("bash sleep 60")
    chat.sees("exit code 3")
    chat.types(_CTRL_D)

    moves = re.findall(r"\x1b\[[0-9;]*[A-HJKSTf]|\r(?!\n)", chat.output)
    assert (chat.ends(), moves, chat.log()) == (0, [], [["start"], ["send", "go"]])


def test_no_color_leaves_out_every_colour(tmp_path: Path) -> None:
    chat = _chat("spoof", tmp_path, NO_COLOR="1")

    chat.enters("go")
    chat.sees(_KEYS)
    chat.types(_CTRL_C)

    assert chat.ends() == 3
    assert not any(f"\x1b[{code}m" in chat.output for code in ("31", "32", "33", "36", "1;37;41", "0;36"))


def test_with_nothing_left_unanswered_there_is_nothing_to_retry(tmp_path: Path) -> None:
    chat = _chat("short", tmp_path)

    chat.enters("go")
    chat.sees("exit code 3")
    chat.enters("/retry")
    chat.sees("There is nothing to retry")
    chat.types(_CTRL_D)

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "go"], ["continue"]])
