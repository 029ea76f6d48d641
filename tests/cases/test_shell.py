import subprocess
import time
from itertools import pairwise

from tests.cases.bench import Bench, SetUp, bash
from tests.cases.processes import running_with
from tests.fakes.openai_server import TCS, TXT, Reply
from tests.fakes.sandboxes import needs
from tests.scenarios.command import until


def _seconds_between_requests(bench: Bench) -> list[float]:
    moments = [request.at for request in bench.server.requests]
    return [after - before for before, after in pairwise(moments)]


def _each(*commands: str) -> list[Reply]:
    return [TCS(bash(f"c{number}", command)) for number, command in enumerate(commands)]


def test_a_command_that_wants_input_meets_its_end_at_once(set_up: SetUp) -> None:
    commands = [
        "cat",
        "read -p 'Password: ' x; echo got=$x",
        'python3 -c "input()"',
        "git commit --allow-empty",
        "cat /dev/stdin | wc -c",
        "bash -i -c 'read y; echo y=$y'",
    ]
    bench = set_up(*_each(*commands), TXT("ok"))

    ran = bench.run()

    results = bench.results(7)
    assert (ran.ending, bench.server.faults) == ((0, "ok"), [])
    assert ["exit code" in text for text in results] == [True] * 6
    assert ("exit code 0" in results[0], "got=" in results[1], "exit code 1" in results[2]) == (True, True, True)
    assert max(_seconds_between_requests(bench)) < 3


def test_a_command_that_asks_at_the_terminal_is_told_that_there_is_none(set_up: SetUp) -> None:
    script = 'printf "Ok to proceed? (y) "; read a < /dev/tty || exit 9; echo $a\n'
    settings = "env | grep -E '^(CI|GIT_TERMINAL_PROMPT|PAGER|OPENAI_API_KEY)=' | sort"
    bench = set_up(
        TCS(bash("c1", "sh ask.sh", timeout=5)),
        TCS(bash("c2", "python3 -c \"open('/dev/tty')\"", timeout=5)),
        TCS(bash("c3", "read a < /dev/tty; echo hello $a", timeout=5)),
        TCS(bash("c4", settings)),
        TXT("ok"),
    )
    bench.write(ask_sh=script)

    ran = bench.run()

    asked, opened, went_on, environment = bench.results(5)
    assert (ran.ending, max(_seconds_between_requests(bench)) < 8) == ((0, "ok"), True)
    assert ("exit code 9" in asked, "without input" in asked) == (True, True)
    assert ("exit code 1" in opened, "without input" in opened) == (True, True)
    assert ("exit code 0" in went_on, "without input" in went_on) == (True, True)
    assert environment.splitlines()[:-1] == ["CI=1", "GIT_TERMINAL_PROMPT=0", "PAGER=cat"]


def test_what_is_left_in_the_background_holds_nothing_up_and_ends_with_the_call(set_up: SetUp) -> None:
    mark = "61.5713"
    commands = [
        f"sleep {mark} & echo started",
        f"sleep {mark} >/dev/null 2>&1 & echo started",
        "nohup python3 -m http.server 0 & sleep 1; echo started",
        f"(sleep {mark} &) ; echo started",
        f"timeout 60 sleep {mark} & disown; echo started",
    ]
    bench = set_up(*_each(*commands), TXT("ok"))

    ran = bench.run()

    assert (ran.ending, max(_seconds_between_requests(bench)) < 5) == ((0, "ok"), True)
    assert [("started" in text, "exit code 0" in text) for text in bench.results(6)] == [(True, True)] * 5
    until(lambda: not running_with(mark), seconds=3)


def test_a_command_past_its_limit_is_stopped_with_all_its_children(set_up: SetUp) -> None:
    mark = "61.5714"
    stubborn = f"trap '' TERM; echo begun; sh -c \"trap '' TERM; sleep {mark}\"; sleep {mark}"
    bench = set_up(TCS(bash("c1", stubborn, timeout=1)), TXT("ok"))
    began = time.monotonic()

    ran = bench.run()

    [result] = bench.results(2)
    assert (ran.ending, "begun" in result, "time limit" in result) == ((0, "ok"), True, True)
    assert (running_with(mark), time.monotonic() - began < 15) == ([], True)


def test_output_of_any_bytes_reaches_the_model_as_text(set_up: SetUp) -> None:
    commands = [
        r"printf 'ok\360\n'",
        r"printf 'ok\0\377\376\n'",
        r"printf 'o\033[31mk\033[0m\033]0;title\007\n'",
        r"printf '10%%\r50%%\rok\n'",
        r"printf 'ok \355\240\200\n'",
        r"printf 'caf\351 ok'; printf 'also\237' >&2",
        r"head -c 3000 /dev/zero | tr '\0' '\377'; echo ok",
    ]
    bench = set_up(*_each(*commands), TXT("fine"))

    ran = bench.run()

    results = bench.results(8)
    assert (ran.ending, bench.server.faults) == ((0, "fine"), [])
    assert ["ok" in text for text in results] == [True] * 7
    assert ("\ufffd" in results[0], any("\x1b" in text or "\r" in text for text in results)) == (True, False)


def test_an_exit_code_is_told_for_what_it_is(set_up: SetUp) -> None:
    hiding = [
        "sh t.sh 2>&1 | tail -5",
        "sh t.sh; echo done",
        "sh t.sh || true",
        "sh t.sh | tee log >/dev/null",
        "sh t.sh & wait; true",
        "sh t.sh\necho done",
    ]
    plain = ["sh t.sh", "true && sh t.sh", "kill -9 $$", "no-such-command-here", "set -o pipefail; sh t.sh | cat"]
    bench = set_up(*_each(*hiding, *plain), TXT("ok"))
    bench.write(t_sh="echo 2 failed; exit 1\n")

    bench.run()

    results = bench.results(12)
    hidden = [
        "in the pipeline, command 1 of 2 failed",
        "failed with exit code 1: sh t.sh",
        "earlier command failed",
    ]
    assert [part in text for part, text in zip(hidden, results, strict=False)] == [True] * 3
    others = ["in the pipeline, command 1 of 2 failed", "not known", "failed with exit code 1: sh t.sh"]
    assert [part in text for part, text in zip(others, results[3:], strict=False)] == [True] * 3
    assert ["succe" in text.lower() for text in results] == [False] * 11
    codes = ["exit code 1", "exit code 1", "SIGKILL", "exit code 127", "exit code 1"]
    assert [code in text for code, text in zip(codes, results[6:], strict=True)] == [True] * 5


def test_that_commands_cannot_commit_is_said_when_the_session_begins(set_up: SetUp) -> None:
    needs("bubblewrap")
    bench = set_up(TCS(bash("c1", "git status")), TXT("ok"), TXT("ok"))
    subprocess.run(["git", "init", "-q", "--separate-git-dir", "../x.git"], cwd=bench.workspace, check=True)

    ran = bench.run()
    bench.configure(f'sandbox_write = ["{bench.folder / "x.git"}"]\n')
    allowed = bench.run()

    assert (ran.ending, "Commands cannot commit here" in ran.err, str(bench.folder / "x.git") in ran.err) == (
        (0, "ok"),
        True,
        True,
    )
    assert (allowed.ending, "commit" in allowed.err) == ((0, "ok"), False)
