import json
import signal

import pytest

from tests.cases.bench import CTRL_D, KEYS, SetUp, bash, play
from tests.cases.processes import running_with
from tests.fakes.openai_server import TC, TCS, TXT
from tests.scenarios.command import until

_CTRL_C = "\x03"


@pytest.mark.parametrize("leaving", [CTRL_D, signal.SIGHUP])
def test_answers_given_before_leaving_stay_with_the_calls_they_were_given_to(
    set_up: SetUp, leaving: str | signal.Signals
) -> None:
    calls = [bash(f"c{number}", f"echo {name} >> log.txt") for number, name in enumerate("abc", 1)]
    bench = set_up(TCS(*calls), TXT("done"))
    first = bench.chat("chat", "go", "--thread", "t1")
    for answer in ("y", "n"):
        first.sees(KEYS)
        first.enters(answer)
    first.sees("echo c >> log.txt")
    first.sees(KEYS)
    if isinstance(leaving, str):
        first.types(leaving)
    else:
        first.signals(leaving)
    left, before = first.ends(), bench.read("log.txt")

    second = bench.chat("resume", "t1")
    play(second, "echo c >> log.txt", (KEYS, "y"), ("done", CTRL_D))

    ended = second.ends()
    question = second.output.split(KEYS)[0].split("· writes log.txt", 1)[-1]
    expected = {CTRL_D: 3, signal.SIGHUP: 129}[leaving]
    assert (left, before, ended, bench.read("log.txt")) == (expected, None, 0, b"a\nc\n")
    assert ("echo a" in question, len(bench.server.bodies), bench.server.faults) == (False, 2, [])
    assert ["the user rejected" in text for text in bench.results(2)] == [False, True, False]


@pytest.mark.parametrize("key", [_CTRL_C, "\x1b"])
def test_a_stopped_batch_is_told_call_by_call_and_the_next_message_is_taken(set_up: SetUp, key: str) -> None:
    mark = "20.61371"
    sleeps = TCS(*(bash(f"c{number}", f"echo begun >> log; sleep {mark}") for number in (1, 2, 3)))
    bench = set_up(sleeps, TXT("ok then"))
    chat = bench.chat("chat", "go", "--mode", "bypassPermissions")
    until(lambda: bench.read("log") is not None)

    chat.types(key)
    chat.sees("Stopped.")
    until(lambda: not running_with(f"sleep {mark}"), seconds=3)
    chat.enters("never mind, say ok")
    chat.sees("ok then")
    chat.types(CTRL_D)

    told = bench.results(2)
    roles = [message["role"] for message in bench.server.bodies[1]["messages"]]
    assert (chat.ends(), bench.server.faults, bench.read("log")) == (0, [], b"begun\n")
    assert ["stopped by user" in text for text in told] == [True] * 3
    assert ["never started" in text for text in told] == [False, True, True]
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "user"]


def test_a_run_that_waits_goes_on_from_its_checkpoint_without_asking_the_model_again(set_up: SetUp) -> None:
    bench = set_up(TC("c1", "bash", {"command": "echo x >> log.txt"}), TXT("done"))

    waiting = bench.ask("go", "--output", "json")
    checkpoint = json.loads(waiting.out)["checkpoint_id"]
    ended = bench.ask("--resume", checkpoint, "--approve", "c1")

    assert (waiting.code, ended.ending) == (3, (0, "done"))
    assert (bench.read("log.txt"), len(bench.server.bodies)) == (b"x\n", 2)


def test_a_thread_stays_in_its_folder_unless_it_is_moved(set_up: SetUp) -> None:
    where = TC("c1", "bash", {"command": "pwd > where.txt"})
    bench = set_up(TXT("one"), where, TXT("two"), where, TXT("three"))
    other = bench.folder / "other"
    other.mkdir()

    bench.run("hello", "--thread", "t1")
    bench.run("where are you", "--resume", "t1", cwd=other)
    stayed = bench.read("where.txt"), list(other.iterdir())
    (bench.workspace / "where.txt").unlink()
    bench.run("and now", "--resume", "t1", "--workspace", str(other))

    assert stayed == (f"{bench.workspace}\n".encode(), [])
    assert (bench.read("where.txt"), (other / "where.txt").read_text()) == (None, f"{other}\n")


def test_a_thread_whose_folder_is_gone_says_so_and_writes_nothing_here(set_up: SetUp) -> None:
    bench = set_up(TXT("one"), TC("c1", "bash", {"command": "pwd > where.txt"}))
    other = bench.folder / "other"
    other.mkdir()
    bench.run("hello", "--thread", "t1")
    bench.workspace.rmdir()

    ran = bench.run("where are you", "--resume", "t1", cwd=other)

    assert (ran.code, list(other.iterdir()), len(bench.server.bodies)) == (2, [], 1)
    assert (str(bench.workspace) in ran.err, "--workspace" in ran.err) == (True, True)


def test_a_long_turn_runs_to_its_end_and_a_step_limit_pauses_it(set_up: SetUp) -> None:
    steps = [TC(f"c{number}", "bash", {"command": f"echo {number} >> log"}) for number in range(60)]
    bench = set_up(*steps, TXT("finished"))

    paused = bench.run("go", "--thread", "t1", "--max-steps", "20")
    until_then = (bench.read("log") or b"").split()
    ended = bench.run("--resume", "t1")

    assert (paused.code, len(until_then), "limit" in paused.err) == (5, 20, True)
    assert ("Recursion" in paused.err + paused.out, "resume t1" in paused.err) == (False, True)
    assert ended.ending == (0, "finished")
    assert (bench.read("log") or b"").split() == [str(number).encode() for number in range(60)]


def test_a_torn_log_of_a_killed_process_costs_at_most_what_was_written_last(set_up: SetUp) -> None:
    bench = set_up(TXT("one"), TC("c1", "bash", {"command": "echo begun >> log; sleep 30"}), TXT("two"))
    bench.run("hello", "--thread", "t1")
    process = bench.command.start("run", "again", "--resume", "t1", "--mode", "bypassPermissions")
    until(lambda: bench.read("log") is not None)
    bench.command.kill(process)
    [log] = bench.home.rglob("graph-agent.db-wal")
    log.write_bytes(log.read_bytes()[:-100])

    listed = bench.command("threads", "list", "--json")
    ran = bench.run("--resume", "t1", "--recover", "cancel")

    [thread] = json.loads(listed.stdout)["threads"]
    assert (thread["thread_id"], ran.code, bench.read("log")) == ("t1", 0, b"begun\n")
    assert bench.server.faults == []


def test_ctrl_c_in_a_headless_run_leaves_a_thread_that_goes_on(set_up: SetUp) -> None:
    mark = "20.61372"
    bench = set_up(TC("c1", "bash", {"command": f"echo begun >> log; exec sleep {mark}"}), after=TXT("two"))
    process = bench.command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
    until(lambda: bench.read("log") is not None)

    process.send_signal(signal.SIGINT)
    code = process.wait(timeout=60)
    left = running_with(f"sleep {mark}")
    ran = bench.run("say ok", "--resume", "t1", "--recover", "cancel")

    assert (code, left, ran.ending) == (130, [], (0, "two"))
    assert (bench.read("log"), bench.server.faults) == (b"begun\n", [])
