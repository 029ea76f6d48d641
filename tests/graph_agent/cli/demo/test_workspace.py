import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.cli.demo import workspace as module
from graph_agent.cli.demo.workspace import DemoCommands, DemoFailed, DemoWorkspace, demo_workspace
from graph_agent.errors import UsageError
from tests.architecture.checkout import ROOT


@pytest.fixture(autouse=True)
def _temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def place() -> Iterator[DemoWorkspace]:
    with demo_workspace(is_kept=False) as made:
        yield made


def test_the_folder_is_deleted_also_after_a_failure_unless_it_is_kept(tmp_path: Path) -> None:
    with demo_workspace(is_kept=False) as place:
        files = sorted(file.name for file in place.workspace.iterdir())
    with pytest.raises(ZeroDivisionError), demo_workspace(is_kept=False):
        raise ZeroDivisionError
    with demo_workspace(is_kept=True) as kept:
        pass

    assert (files, list(tmp_path.iterdir())) == (["charge.sh", "order.txt"], [kept.folder])


def test_the_next_demo_deletes_only_what_a_killed_one_left(tmp_path: Path) -> None:
    demo = (
        "import os; from graph_agent.cli.demo.workspace import demo_workspace as demo; made = demo(is_kept=False)"
    )
    kill = f"{demo}; made.__enter__(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", kill], env={**os.environ, "TMPDIR": str(tmp_path)}, cwd=ROOT, check=False)
    [left] = tmp_path.iterdir()
    (tmp_path / "graph-agent-demo-link").symlink_to(left)

    with (
        demo_workspace(is_kept=True) as kept,
        demo_workspace(is_kept=False) as first,
        demo_workspace(is_kept=False) as second,
    ):
        there = sorted(tmp_path.iterdir())

    assert there == sorted([tmp_path / "graph-agent-demo-link", kept.folder, first.folder, second.folder])


def test_its_commands_see_none_of_the_users_settings(place: DemoWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_DB", "GRAPH_AGENT_MODE", "KEPT"):
        monkeypatch.setenv(name, "x")

    ours = {name: value for name, value in place.environment.items() if value in ("x", str(place.home))}

    assert ours == {"KEPT": "x", "GRAPH_AGENT_HOME": str(place.home)}


def test_the_workspace_is_charged_once_the_command_printed_it(place: DemoWorkspace) -> None:
    states = [place.is_charged()]
    (place.workspace / "charges.txt").touch()
    states.append(place.is_charged())
    place.home.mkdir()
    (place.home / "call-1.out").write_text("card charged, waiting for the bank\n")

    assert [*states, place.is_charged()] == [False, False, True]


def test_without_a_temporary_folder_the_demo_names_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))

    with pytest.raises(UsageError, match=r"temporary folder .* TMPDIR"), demo_workspace(is_kept=False):
        pass


def shell(place: DemoWorkspace, script: str) -> DemoCommands:
    """Commands that run this script, with what they are given as $1, $2 ..."""
    return DemoCommands(place, ("sh", "-c", script, "sh"))


def pid_in(file: Path) -> int | None:
    return int(text) if file.exists() and (text := file.read_text().strip()) else None


def test_a_command_is_printed_before_its_output_runs_in_the_workspace_and_reads_nothing(
    place: DemoWorkspace, capfd: pytest.CaptureFixture[str]
) -> None:
    shell(place, "echo out $1; echo err >&2; pwd; cat").run("say", "two words")

    expected = f"\n$ graph-agent say 'two words'\nout say\nerr\n{place.workspace}\n"
    assert capfd.readouterr() == (expected, "")


def test_ctrl_c_reaches_the_demo_and_not_its_command(
    place: DemoWorkspace, capfd: pytest.CaptureFixture[str]
) -> None:
    children = shell(place, """[ $(ps -o pgid= -p $$) = $$ ] && echo '"alone"'""")
    children.run()

    assert (capfd.readouterr().out.splitlines()[2:], children.read("calls")) == (['"alone"'], "alone")


def test_an_unexpected_exit_code_is_an_error(place: DemoWorkspace) -> None:
    shell(place, "exit 3").run("run", exit_code=3)

    with pytest.raises(DemoFailed, match=r"^graph-agent run 'a b' ended with 4 instead of 3; .*--keep"):
        shell(place, "exit 4").run("run", "a b", exit_code=3)


def test_json_is_read_and_not_printed(place: DemoWorkspace, capfd: pytest.CaptureFixture[str]) -> None:
    answer = shell(place, 'printf \'{"got": "%s %s"}\' "$1" "$2"').read("calls")

    assert (answer, capfd.readouterr().out) == ({"got": "calls --json"}, "")


def test_a_killed_command_gets_no_chance_to_answer(place: DemoWorkspace, capfd: pytest.CaptureFixture[str]) -> None:
    pid_file = place.workspace / "pid"

    shell(place, "trap 'echo bye' TERM INT HUP; echo $$ > pid; exec sleep 30").run_and_kill(
        "run", once=lambda: pid_in(pid_file) is not None
    )

    assert capfd.readouterr().out == f"\n$ graph-agent run &\n\n$ kill -9 {pid_in(pid_file)}\n"
    with pytest.raises(ProcessLookupError):
        os.kill(pid_in(pid_file) or 0, 0)


def test_a_command_that_cannot_be_killed_in_time_is_an_error(place: DemoWorkspace) -> None:
    for script in ("exit 0", "[ $1 = run ] && exec sleep 30"):
        children = shell(place, script)
        with pytest.raises(DemoFailed, match=r"^graph-agent run did not get to the point where it is killed"):
            children.run_and_kill("run", once=lambda: False, within_s=0.3)
        children.end()


def test_ending_kills_a_command_that_ignores_sigterm(place: DemoWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GRACE_S", 0.2)
    children = shell(place, "[ $1 = run ] || exit 0; trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    pid_file = place.workspace / "pid"

    with pytest.raises(KeyboardInterrupt):
        children.run_and_kill("run", once=lambda: pid_in(pid_file) is not None and interrupted())
    children.end()

    with pytest.raises(ProcessLookupError):
        os.kill(pid_in(pid_file) or 0, 0)


def interrupted() -> bool:
    raise KeyboardInterrupt


def test_ending_cancels_what_a_killed_command_left(place: DemoWorkspace) -> None:
    shell(place, 'echo "$@" > last').end()

    assert (place.workspace / "last").read_text() == "recover --all cancel --end-processes\n"
