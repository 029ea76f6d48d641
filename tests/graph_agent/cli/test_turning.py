from pathlib import Path

from tests.fakes.pty_chat import PtyChat


def test_a_command_typed_while_a_turn_runs_is_said_and_run_after_it(tmp_path: Path) -> None:
    chat = PtyChat("short", tmp_path)
    chat.sees("> ")

    chat.enters("go")
    chat.sees("sleep 60")
    chat.enters("/mode plan")
    chat.sees("after this turn: /mode plan")
    chat.sees("exit code 3")
    chat.sees("mode: plan")
    chat.types("\x04")

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "go"]])
