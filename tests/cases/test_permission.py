import json
import re
import signal
from pathlib import Path

import pytest

from tests.cases.bench import SetUp, bash
from tests.fakes.openai_server import TC, TCS, TXT

_KEYS = "[s]top the turn > "
_CTRL_D = "\x04"
_RULES = {"allow": ["bash"], "ask": ["bash(rm *)"], "deny": ["bash(rm -rf *)"]}


@pytest.mark.parametrize("order", [("allow", "ask", "deny"), ("deny", "ask", "allow")])
def test_the_strictest_rule_wins_in_every_order_and_every_spelling(set_up: SetUp, order: tuple[str, ...]) -> None:
    asked = [
        "rm f",
        "echo a && rm f",
        "echo a; rm f",
        "true | rm f",
        "(rm f)",
        "echo $(rm f)",
        "FOO=1 rm f",
        "if true; then rm f; fi",
        "rm f &",
        "rm  f",
        '"rm" f',
        "r\\m f",
    ]
    denied = ["rm -rf d", "echo a && rm -rf d", "rm  -rf  d"]
    calls = [bash(f"c{number}", command) for number, command in enumerate(["ls", *asked, *denied])]
    bench = set_up(TCS(*calls), TXT("ok"))
    bench.configure("[policy]\n" + "".join(f"{name} = {json.dumps(_RULES[name])}\n" for name in order))
    bench.write(f="kept")
    (bench.workspace / "d").mkdir()

    ran = bench.ask("go", "--mode", "dontAsk")

    listed, *refused = bench.results(2)
    kept = bench.read("f"), (bench.workspace / "d").is_dir()
    assert (ran.ending, kept, "exit code 0" in listed) == ((0, "ok"), (b"kept", True), True)
    assert [text for text in refused[: len(asked)] if "rm *" not in text or "ask" not in text] == []
    assert [text for text in refused[len(asked) :] if "rm -rf *" not in text or "denies" not in text] == []


def test_nothing_in_a_question_is_obeyed_by_the_terminal(set_up: SetUp) -> None:
    bench = set_up(
        TCS(
            bash("c1", "touch pwn #\r\x1b[2K   command: ls -la"),
            ("c2", "write_file", {"file_path": "a\x1b[1A.txt", "content": "x\x1b[8mhidden\x9b2J\r"}),
            bash("c3", "echo \u202etxt.sh \u200b\x1b]0;title\x07 \x08\x08\x08ls", description="\x1b[Hharmless\r"),
            ("c4", "\x1b[31mno_such_tool\r", {"x\x1b[2J": "y\x1b[2J"}),
            text="I will \x1b[2J\x1b]52;c;cHduZWQ=\x07clear\r it",
        ),
        TXT("ok\x1b[2K"),
    )
    chat = bench.chat("chat", "go", "--thread", "t1")

    for _ in range(3):
        chat.sees(_KEYS)
        chat.enters("n")
    chat.sees("ok")
    chat.types(_CTRL_D)

    assert (chat.ends(), list(bench.workspace.iterdir())) == (0, [])
    visible = re.sub(r"\x1b\[[0-9;]*m", "", chat.output)
    assert [words in visible for words in ("touch pwn #\\r\\x1b[2K", "a\\x1b[1A.txt", "\\u202e")] == [True] * 3
    raw = [
        "pwn #\r",
        "\x1b[2K   command",
        "\x1b[1A.txt",
        "\x1b[8mhidden",
        "\x9b",
        "\u202e",
        "\u200b",
        "\x07",
        "\x1b]",
    ]
    assert [sequence for sequence in raw if sequence in chat.output] == []


def test_a_refusal_by_flag_reaches_the_model_with_its_reason(set_up: SetUp) -> None:
    bench = set_up(
        TCS(bash("c1", "echo no >> log.txt"), bash("c2", "echo yes >> yes.txt")),
        TXT("understood"),
    )

    waiting = bench.ask("go", "--thread", "t1")
    ended = bench.ask("--resume", "t1", "--reject", "c1", "--reason", "not now", "--approve", "c2")

    refused, ran = bench.results(2)
    assert (waiting.code, ended.ending, bench.read("log.txt"), bench.read("yes.txt")) == (
        3,
        (0, "understood"),
        None,
        b"yes\n",
    )
    assert ("refused" in refused, "not now" in refused, "not now" in ran) == (True, True, False)
    assert (len(bench.server.bodies), bench.server.faults) == (2, [])


def test_a_refusal_after_a_kill_at_the_question_is_the_same(set_up: SetUp) -> None:
    bench = set_up(TC("c1", "bash", {"command": "echo no >> log.txt"}), TXT("understood"))
    chat = bench.chat("chat", "go", "--thread", "t1")
    chat.sees(_KEYS)
    chat.signals(signal.SIGKILL)
    chat.ends()

    ended = bench.ask("--resume", "t1", "--reject", "c1", "--reason", "not now")

    [refused] = bench.results(2)
    assert (ended.ending, bench.read("log.txt")) == ((0, "understood"), None)
    assert ("refused" in refused, "not now" in refused, bench.server.faults) == (True, True, [])


def test_in_dont_ask_mode_the_model_is_told_that_nobody_could_be_asked(set_up: SetUp) -> None:
    bench = set_up(
        TCS(
            bash("c1", "touch t"),
            ("c2", "write_file", {"file_path": "w.txt", "content": "x"}),
            ("c3", "read_file", {"file_path": "/etc/hostname"}),
            ("c4", "read_file", {"file_path": "seen.txt"}),
        ),
        TXT("ok"),
    )
    bench.write(seen_txt="AAA\n")

    ran = bench.ask("go", "--mode", "dontAsk")

    *refused, read = bench.results(2)
    names = sorted(path.name for path in Path(bench.workspace).iterdir())
    assert (ran.ending, names, "AAA" in read) == ((0, "ok"), ["seen.txt"], True)
    assert ["denied by policy" in text for text in refused] == [True] * 3
