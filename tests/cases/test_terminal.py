import json
import shlex
import subprocess
import sys
import time

from tests.cases.bench import CTRL_D, Bench, SetUp, play
from tests.fakes.openai_server import ERR, TC, TXT
from tests.fakes.pty_program import PtyProgram

_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"


def _said(bench: Bench) -> list[str]:
    return [message["content"] for message in bench.server.bodies[-1]["messages"] if message["role"] == "user"]


def test_pasted_lines_are_one_message_whatever_they_begin_with(set_up: SetUp) -> None:
    pastes = ["line1\nline2\n/line3", "/quit\nis what I typed", "line1\r\nline2\r\n", "中文\tx\n\n  indented"]
    bench = set_up(*(TXT(f"answer {number}") for number in range(len(pastes))))
    chat = bench.chat()

    for number, paste in enumerate(pastes):
        chat.sees("> ")
        chat.types(f"{_PASTE_BEGINS}{paste}{_PASTE_ENDS}")
        time.sleep(0.3)
        chat.types("\r")
        chat.sees(f"answer {number}")
    chat.types(CTRL_D)

    ended = chat.ends()
    said = [text.replace("\r\n", "\n").rstrip("\n") for text in _said(bench)]
    assert (ended, said) == (0, ["line1\nline2\n/line3", "/quit\nis what I typed", "line1\nline2", pastes[3]])


def test_what_is_typed_while_the_chat_starts_comes_after_its_first_message(set_up: SetUp) -> None:
    bench = set_up(TXT("one"), TXT("two"), TXT("three"))
    command = ["-m", "graph_agent", "chat", "first"]
    chat = PtyProgram(command, bench.workspace, bench.command.env, is_cold=True)

    chat.sees("/help")
    chat.types("second\rthird\r")
    chat.sees("three")
    chat.types(CTRL_D)

    assert (chat.ends(), _said(bench)) == (0, ["first", "second", "third"])


def test_ctrl_z_gives_the_terminal_back_to_the_shell_at_the_prompt_and_while_a_turn_runs(set_up: SetUp) -> None:
    bench = set_up(TXT("answer 1"), TC("c1", "bash", {"command": "echo begun; sleep 1.2"}), TXT("answer 2"))
    start = "import os; os.environ['PS1'] = 'shell$ '; os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])"
    shell = PtyProgram(["-c", start], bench.workspace, bench.command.env)
    play(shell, ("shell$ ", f"{sys.executable} -m graph_agent chat --mode bypassPermissions"), "thread …")

    shell.types("half \x1a")
    shell.sees("shell$ ")
    shell.enters("fg")
    shell.sees("thread …")
    shell.enters("typed")
    shell.sees("answer 1")
    shell.enters("go on")
    shell.sees("begun")
    shell.types("\x1a")
    shell.sees("shell$ ")
    shell.enters("fg")
    shell.sees("answer 2")
    shell.types(CTRL_D)
    shell.sees("shell$ ")
    shell.enters("exit $?")

    assert (shell.ends(), _said(bench)) == (0, ["half typed", "go on"])


def test_streams_that_are_closed_or_full_end_a_run_without_a_traceback(set_up: SetUp) -> None:
    bench = set_up(TXT("one"), TXT("two"))
    run = shlex.join(bench.command.argv("run", "go"))

    closed, full = (
        subprocess.run(
            ["sh", "-c", f"{run} {redirected}"],
            cwd=bench.workspace,
            env=bench.command.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=40,
            check=False,
        )
        for redirected in (">&-", ">/dev/full")
    )

    assert (closed.returncode, closed.stderr) == (0, b"")
    assert (full.returncode, b"No space left" in full.stderr, b"bug" in full.stderr) == (1, True, False)


def _bare(bench: Bench, data: bytes, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        bench.command.argv(*arguments),
        input=data,
        cwd=bench.workspace,
        env=bench.command.env,
        capture_output=True,
        timeout=30,
        check=False,
    )


def test_without_a_command_stdin_decides_what_happens(set_up: SetUp) -> None:
    bench = set_up(TXT("ok"), TXT("two"))
    began = time.monotonic()

    nothing = _bare(bench, b"")
    took = time.monotonic() - began
    asked = _bare(bench, b"say ok\n")
    dashed = _bare(bench, b"caf\xe9 \xff\n", "run", "-")

    assert (nothing.returncode, nothing.stdout, b"Usage" in nothing.stderr, took < 5) == (2, b"", True, True)
    assert (asked.returncode, asked.stdout, dashed.returncode, dashed.stdout) == (0, b"ok\n", 0, b"two\n")
    assert (bench.server.bodies[0]["messages"][-1]["content"].strip(), bench.server.faults) == ("say ok", [])


def test_files_get_no_escape_no_carriage_return_and_no_spinner(set_up: SetUp) -> None:
    noisy = r"printf '\033[31mred\033[0m\r50%%\rdone\n'; sleep 1; exit 3"
    bench = set_up(
        ERR(500, "b\x1b[2Kad\r [/tag]"), TC("c1", "bash", {"command": noisy}), TXT("**hi** \x1b[2Jthere\r")
    )

    ran = _bare(bench, b"", "run", "go", "--mode", "bypassPermissions")

    assert (ran.returncode, ran.stdout) == (0, rb"**hi** \x1b[2Jthere\r" + b"\n")
    assert [byte in ran.stdout + ran.stderr for byte in (b"\x1b", b"\r")] == [False, False]
    assert (b"hi" in ran.stderr, len(ran.stderr.splitlines()) <= 4) == (False, True)


def test_the_stream_of_events_holds_nothing_but_json(set_up: SetUp) -> None:
    bench = set_up(TC("c1", "ls", {"path": "."}), TXT("line\n\u2028 \x1b[2J"))

    ran = _bare(bench, b"", "run", "go", "--output", "stream-json")

    events = [json.loads(line) for line in ran.stdout.decode().split("\n") if line]
    numbers = [event["seq"] for event in events]
    assert (numbers, events[-1]["type"]) == (sorted(set(numbers)), "result")
    assert (events[-1]["answer"], b"\x1b" in ran.stdout) == ("line\n\u2028 \x1b[2J", False)


def test_what_looks_like_markup_is_text_everywhere_in_the_chat(set_up: SetUp) -> None:
    echo = """echo "[/'A', 1, /'B'] [red]x[/]"; exit 3"""
    bench = set_up(
        TC("c1", "bash", {"command": echo}),
        TXT("[/nestedType] done [bold]"),
        ERR(500, "bad [/tag]"),
        TXT("[link=x]two[/link] :smile:"),
        ERR(401, "no [/key] [red]"),
    )
    chat = bench.chat("chat", "[go] [/go]", "--mode", "bypassPermissions")

    chat.sees("[/'A', 1, /'B'] [red]x[/]")
    chat.sees("[/nestedType] done [bold]")
    chat.enters("again [/again]")
    chat.sees("bad [/tag]")
    chat.sees("[link=x]two[/link] :smile:")
    chat.enters("/nosuch[/x]")
    chat.enters("once more")
    chat.sees("no [/key] [red]")
    chat.types(CTRL_D)

    assert (chat.ends(), "MarkupError" in chat.output, "Traceback" in chat.output) == (0, False, False)
