import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.cli.demo import workspace as module
from graph_agent.cli.demo.workspace import DemoCommands, DemoFailed, DemoWorkspace, demo_workspace


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DemoWorkspace]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with demo_workspace(is_kept=False) as made:
        yield made


def shell(place: DemoWorkspace, script: str) -> DemoCommands:
    """Commands that run this script, with what they are given as $1, $2 ..."""
    return DemoCommands(place, ("sh", "-c", script, "sh"))


def pid_in(file: Path) -> int | None:
    return int(text) if file.exists() and (text := file.read_text().strip()) else None


def test_a_command_is_printed_before_what_it_prints_on_either_stream(
    place: DemoWorkspace, capfd: pytest.CaptureFixture[str]
) -> None:
    shell(place, "echo out $1; echo err >&2").run("say", "two words")

    assert capfd.readouterr() == ("\n$ graph-agent say 'two words'\nout say\nerr\n", "")


def test_it_runs_in_the_workspace_and_reads_nothing(
    place: DemoWorkspace, capfd: pytest.CaptureFixture[str]
) -> None:
    shell(place, "pwd; cat").run()

    assert capfd.readouterr().out.splitlines()[2:] == [str(place.workspace)]


def test_what_is_typed_to_end_the_demo_reaches_no_command(
    place: DemoWorkspace, capfd: pytest.CaptureFixture[str]
) -> None:
    children = shell(place, """[ $(ps -o pgid= -p $$) = $$ ] && echo '"alone"'""")
    children.run()

    assert (capfd.readouterr().out.splitlines()[2:], children.read("calls")) == (['"alone"'], "alone")


def test_a_command_that_ends_otherwise_is_named(place: DemoWorkspace) -> None:
    shell(place, "exit 3").run("run", exit_code=3)

    with pytest.raises(DemoFailed, match=r"^graph-agent run 'a b' ended with 4 instead of 3; .*--keep"):
        shell(place, "exit 4").run("run", "a b", exit_code=3)


def test_json_is_read_and_not_printed(place: DemoWorkspace, capfd: pytest.CaptureFixture[str]) -> None:
    answer = shell(place, 'printf \'{"got": "%s %s"}\' "$1" "$2"').read("calls")

    assert (answer, capfd.readouterr().out) == ({"got": "calls --json"}, "")


def test_a_killed_command_gets_no_chance_to_answer(place: DemoWorkspace, capfd: pytest.CaptureFixture[str]) -> None:
    told = place.workspace / "pid"

    shell(place, "trap 'echo bye' TERM INT HUP; echo $$ > pid; exec sleep 30").run_and_kill(
        "run", once=lambda: pid_in(told) is not None
    )

    assert capfd.readouterr().out == f"\n$ graph-agent run &\n\n$ kill -9 {pid_in(told)}\n"
    with pytest.raises(ProcessLookupError):
        os.kill(pid_in(told) or 0, 0)


def test_a_command_that_ends_or_dawdles_before_it_can_be_killed_is_named(place: DemoWorkspace) -> None:
    for script in ("exit 0", "[ $1 = run ] && exec sleep 30"):
        children = shell(place, script)
        with pytest.raises(DemoFailed, match=r"^graph-agent run did not get to the point where it is killed"):
            children.run_and_kill("run", once=lambda: False, within_s=0.3)
        children.end()


def test_the_end_ends_what_runs_also_where_it_will_not(
    place: DemoWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 0.2)
    children = shell(place, "[ $1 = run ] || exit 0; trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    told = place.workspace / "pid"

    with pytest.raises(KeyboardInterrupt):
        children.run_and_kill("run", once=lambda: pid_in(told) is not None and interrupted())
    children.end()

    with pytest.raises(ProcessLookupError):
        os.kill(pid_in(told) or 0, 0)


def interrupted() -> bool:
    raise KeyboardInterrupt


def test_the_end_gives_up_what_a_killed_command_left(place: DemoWorkspace) -> None:
    shell(place, 'echo "$@" > last').end()

    assert (place.workspace / "last").read_text() == "recover --all cancel --end-processes\n"
