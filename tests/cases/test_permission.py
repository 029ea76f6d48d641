import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cases.bench import CTRL_D, KEYS, SetUp, bash, play
from tests.fakes.openai_server import TC, TCS, TXT

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

    for number in (1, 2, 3):
        # The keys alone may be drawn again with the answer; what is typed before the next question does not count.
        chat.sees(f"{number} of 3")
        chat.sees(KEYS)
        chat.enters("n")
    chat.sees("ok")
    chat.types(CTRL_D)

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
        "title\x07",
        "=\x07",
        # The chat itself asks for the background and sets the title.
        "\x1b]0;",
        "\x1b]52;",
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
    assert ("the user rejected" in refused, "not now" in refused, "not now" in ran) == (True, True, False)
    assert (len(bench.server.bodies), bench.server.faults) == (2, [])


def test_a_refusal_after_a_kill_at_the_question_is_the_same(set_up: SetUp) -> None:
    bench = set_up(TC("c1", "bash", {"command": "echo no >> log.txt"}), TXT("understood"))
    chat = bench.chat("chat", "go", "--thread", "t1")
    chat.sees(KEYS)
    chat.signals(signal.SIGKILL)
    chat.ends()

    ended = bench.ask("--resume", "t1", "--reject", "c1", "--reason", "not now")

    [refused] = bench.results(2)
    assert (ended.ending, bench.read("log.txt")) == ((0, "understood"), None)
    assert ("the user rejected" in refused, "not now" in refused, bench.server.faults) == (True, True, [])


def test_a_rule_that_is_none_is_told_before_there_is_a_thread(set_up: SetUp) -> None:
    bench = set_up(TXT("ok"))
    bench.configure('[policy]\nallow = ["bash("]\n')

    ran = bench.ask("go", "--output", "json")

    assert (ran.code, json.loads(ran.out)["status"], "'bash(' is not a rule" in ran.err) == (2, "failed", True)
    assert bench.command.json("threads", "list") == {"threads": []}


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


def test_always_stores_exactly_what_was_shown_and_asks_for_the_rest(set_up: SetUp) -> None:
    both = {"command": "git status && rm -rf ./tmp"}
    bench = set_up(
        TC("c1", "bash", both), TC("c2", "bash", {"command": "rm -rf ./other"}), TC("c3", "bash", both), TXT("end")
    )
    subprocess.run(["git", "init", "-q"], cwd=bench.workspace, check=True)
    for name in ("tmp", "other"):
        (bench.workspace / name).mkdir()
    chat = bench.chat("chat", "go", "--thread", "t1")

    rules = ("bash(git status)", "bash(rm -rf ./tmp)", "bash(git status *)")
    play(chat, (KEYS, "a"), *rules, ("b back", "1"), ("u everywhere", "t"))
    play(chat, "rm -rf ./other", KEYS)
    before_an_answer = sorted(path.name for path in bench.workspace.iterdir())
    (bench.workspace / "tmp").mkdir()
    chat.enters("n")
    chat.sees("end")
    chat.types(CTRL_D)

    assert (chat.ends(), before_an_answer) == (0, [".git", "other"])
    assert sorted(path.name for path in bench.workspace.iterdir()) == [".git", "other"]
    [grant] = bench.command.json("policy", "list")["grants"]
    assert (grant["rules"], grant["scope"]) == (["bash(git status)", "bash(rm -rf ./tmp)"], "thread")
    reasons = {call["call_id"]: call["reason"] for call in bench.command.json("calls", "t1")["calls"]}
    assert reasons["c3"] == "Always allowed by grant 1 (this thread): 'bash(git status)', 'bash(rm -rf ./tmp)'."
    assert bench.server.faults == []


def test_an_always_of_this_thread_holds_in_a_later_process_and_in_no_other_thread(set_up: SetUp) -> None:
    call = {"command": "touch here"}
    bench = set_up(*(reply for n in range(3) for reply in (TC(f"c{n}", "bash", call), TXT("ok"))))
    bench.ask("go", "--thread", "t1")
    bench.command("approvals", "approve", "c0", "--always")
    first = bench.ask("--resume", "t1")

    again = bench.ask("go", "--thread", "t1")
    other = bench.ask("go", "--thread", "t2")

    assert [ran.code for ran in (first, again, other)] == [0, 0, 3]


def test_a_denial_holds_in_every_thread_and_mode_and_over_a_permission_until_it_is_revoked(set_up: SetUp) -> None:
    call = {"command": "touch here"}
    later = (reply for n in (1, 2, 3) for reply in (TC(f"c{n}", "bash", call), TXT("ok")))
    bench = set_up(TC("c0", "bash", call), *later)
    assert [bench.ask("go", "--thread", thread).code for thread in ("t0", "t1")] == [3, 3]
    for thread, answer in (("t0", "approve"), ("t1", "reject")):
        bench.command("approvals", answer, f"c{thread[1]}", "--always", "--scope", "project")

    first = bench.ask("--resume", "t1")
    bypassing = bench.run("go", "--thread", "t2")
    reason = bench.command.json("calls", "t2")["calls"][0]["reason"]
    granted, denied = bench.command.json("policy", "list")["grants"]
    listed, shown = (bench.command("policy", word).stdout for word in ("list", "show"))
    revoked = bench.command("policy", "revoke", "2")

    assert ([first.code, bypassing.code], bench.read("here")) == ([0, 0], None)
    assert reason == "Always denied by grant 2 (this project): 'bash(touch here)'."
    assert [(one["effect"], one["rules"]) for one in (granted, denied)] == [
        ("allow", ["bash(touch here)"]),
        ("deny", ["bash(touch here)"]),
    ]
    assert f"denial 2  in {bench.workspace}, in every mode" in listed
    assert ("grant 2" in shown, revoked.stdout.splitlines()[0]) == (True, "Revoked denial 2:")
    assert (bench.ask("go", "--thread", "t3").code, bench.read("here")) == (0, b"")


def test_an_always_never_answers_a_question_that_is_open_already(set_up: SetUp) -> None:
    call = {"command": "touch here"}
    bench = set_up(TC("c1", "bash", call), TC("c2", "bash", call), TXT("ok"))
    for thread in ("t1", "t2"):
        bench.ask("go", "--thread", thread)
    bench.command("approvals", "approve", "c1", "--always", "--scope", "user")

    still = bench.ask("--resume", "t2")

    assert (still.code, [one["call_id"] for one in bench.command.json("approvals", "list")["approvals"]]) == (
        3,
        ["c2"],
    )


def test_an_always_of_a_looser_mode_does_not_hold_in_a_stricter_one(set_up: SetUp) -> None:
    call = {"command": "touch here"}
    bench = set_up(*(TC(f"c{n}", "bash", call) for n in range(2)), TXT("ok"), TC("c3", "bash", call), TXT("ok"))
    bench.ask("go", "--thread", "t1", "--mode", "acceptEdits")
    bench.command("approvals", "approve", "c0", "--always", "--scope", "project")

    stricter = bench.ask("go", "--thread", "t2")
    as_loose = bench.ask("--resume", "t1")
    as_loose_elsewhere = bench.ask("go", "--thread", "t3", "--mode", "acceptEdits")

    assert [ran.code for ran in (stricter, as_loose, as_loose_elsewhere)] == [3, 0, 0]


def test_arguments_edited_in_an_editor_are_judged_and_their_change_is_shown_before_they_run(
    set_up: SetUp, tmp_path: Path
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ncp "$NEXT" "$1"; mv "$NEXT.2" "$NEXT" || true\n')
    editor.chmod(0o700)
    (tmp_path / "left").write_text("garbage")
    (tmp_path / "left.2").write_text('{"file_path": "b.txt", "content": "mine\\n"}')
    bench = set_up(
        TC("c1", "write_file", {"file_path": "a.txt", "content": "model\n"}),
        TXT("end"),
        env={"VISUAL": str(editor), "NEXT": str(tmp_path / "left")},
    )
    chat = bench.chat("chat", "go", "--thread", "t1")

    play(
        chat,
        (KEYS, "e"),
        "The edited text is not valid JSON",
        (KEYS, "e"),
        "b.txt",
        "your edited arguments",
        "mine",
        KEYS,
    )
    nothing_yet = list(bench.workspace.iterdir())
    chat.enters("y")
    chat.sees("end")
    chat.types(CTRL_D)

    assert (chat.ends(), nothing_yet, bench.read("a.txt"), bench.read("b.txt")) == (0, [], None, b"mine\n")


def test_three_calls_are_answered_together_once_each_was_seen(set_up: SetUp) -> None:
    bench = set_up(TCS(*(bash(f"c{n}", f"rm -f x; echo {n} >> log.txt") for n in range(3))), TXT("end"))
    chat = bench.chat("chat", "go", "--thread", "t1")

    play(
        chat,
        "3 calls need approval",
        (KEYS, "Y"),
        "echo 2 >> log.txt",
        "3 of them HIGH risk",
        ("b back", "y"),
        ("end", CTRL_D),
    )

    assert (chat.ends(), bench.read("log.txt")) == (0, b"0\n1\n2\n")


def test_an_always_given_in_another_terminal_is_told_in_the_chat_that_waits(set_up: SetUp) -> None:
    bench = set_up(TC("c1", "bash", {"command": "touch here"}), TXT("end"))
    chat = bench.chat("chat", "go", "--thread", "t1")
    chat.sees(KEYS)

    bench.command.json("approvals", "approve", "c1", "--always", "--scope", "project")
    play(
        chat,
        "answered by you, in another terminal: yes (always in this project: bash(touch here))",
        ("end", CTRL_D),
    )

    assert (chat.ends(), bench.read("here")) == (0, b"")


@pytest.mark.parametrize("scope", ["thread", "project"])
def test_a_fork_takes_along_what_was_allowed_in_its_project_and_not_what_was_in_its_thread(
    set_up: SetUp, scope: str
) -> None:
    call = {"command": "touch here"}
    bench = set_up(TC("c0", "bash", call), TXT("ok"), TC("c1", "bash", call), TXT("ok"))
    bench.ask("go", "--thread", "t1")
    bench.command("approvals", "approve", "c0", "--always", "--scope", scope)
    bench.ask("--resume", "t1")
    [head] = [one["checkpoint_id"] for one in bench.command.json("threads", "list")["threads"]]

    forked = bench.command.json("fork", head)["thread_id"]
    again = bench.ask("again", "--thread", forked)

    assert again.code == (3 if scope == "thread" else 0)


def test_leaving_while_the_scope_of_an_always_is_chosen_keeps_the_question_and_stores_nothing(
    set_up: SetUp,
) -> None:
    bench = set_up(TC("c1", "bash", {"command": "touch here"}), TXT("end"))
    chat = bench.chat("chat", "go", "--thread", "t1")
    play(chat, (KEYS, "a"), "b back")

    chat.types("\x04")

    waiting = [one["call_id"] for one in bench.command.json("approvals", "list")["approvals"]]
    assert (chat.ends(), waiting, bench.read("here")) == (3, ["c1"], None)
    assert bench.command.json("policy", "list")["grants"] == []
