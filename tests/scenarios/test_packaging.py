"""How the program is started by others: make without a terminal, and the action for workflows."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.architecture.checkout import ROOT
from tests.scenarios.command import NO_SANDBOX, Command, until

pytestmark = pytest.mark.slow

ACTION = ROOT / ".github/actions/graph-agent/run.sh"
READY = list(Path(sys.prefix).glob(".ready-*"))


@pytest.mark.skipif(not READY, reason="this environment was not made by make")
@pytest.mark.parametrize(
    ("stdin", "said"),
    [("", ["in a terminal to open its chat", "make demo"]), ("list the files", ["notes.txt"])],
)
def test_make_run_without_a_terminal_runs_the_text_on_stdin_or_says_what_it_is(
    tmp_path: Path, stdin: str, said: list[str]
) -> None:
    command = Command(tmp_path)
    (command.workspace / "notes.txt").touch()

    done = subprocess.run(
        ["make", "-s", "run", f"VENV={sys.prefix}", f"WORKSPACE={command.workspace}"],
        cwd=ROOT,
        env=command.env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, [words for words in said if words not in done.stdout]) == (0, []), done.stderr


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout")
def test_one_line_installs_it_from_git_and_it_knows_how_to_update_itself(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    # What it depends on, and what builds it, is not downloaded again.
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    here = ["--no-deps", "--no-index", "--no-build-isolation", "-q"]

    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", *here, f"git+file://{ROOT}"]
    subprocess.run(pip, check=True, timeout=150, cwd=tmp_path)
    program = environment / "bin" / "graph-agent"
    done = subprocess.run(
        [str(program), "update", "--json"], env=Command(tmp_path).env, cwd=tmp_path, capture_output=True, check=True
    )

    told = json.loads(done.stdout)
    assert (told["installed_with"], told["command"][1:]) == (
        "pip",
        ["-m", "pip", "install", "--upgrade", f"git+file://{ROOT}"],
    )
    assert (packages / "graph_agent" / "__init__.py").is_file()


def _programs(folder: Path) -> Path:
    """A folder with `graph-agent`, and a `gh` that notes its arguments, its token and the comment."""
    programs = folder / "programs"
    programs.mkdir()
    scripts = {
        "graph-agent": (
            f'printf "%s\\n" "${{GH_TOKEN-none}}" >>{folder}/tokens\nexec {sys.executable} -m graph_agent "$@"'
        ),
        "gh": f'printf "%s\\n" "$GH_TOKEN $*" >>{folder}/gh.log\ncp "${{@: -1}}" {folder}/comment.md',
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (programs / name).chmod(0o755)
    return programs


def _act(command: Command, **inputs: str) -> "subprocess.CompletedProcess[str]":
    programs = command.folder / "programs"
    if not programs.exists():
        _programs(command.folder)
    path = f"{programs}:{os.environ['PATH']}"
    output = str(command.folder / "output")
    return subprocess.run(
        ["bash", str(ACTION)],
        cwd=command.workspace,
        env={**command.env, "PATH": path, "GITHUB_OUTPUT": output, "GH_TOKEN": "t0ken", **inputs},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_action_posts_what_waits_for_approval_and_a_later_run_approves_it(tmp_path: Path) -> None:
    command = Command(tmp_path)

    asked = _act(command, PROMPT="run echo ~~~~ >made.txt", THREAD="ci-1", ISSUE="7")
    comment = (tmp_path / "comment.md").read_text()
    approved = _act(command, RESUME="ci-1", THREAD="unused", APPROVE="all", ISSUE="7")

    assert (asked.returncode, approved.returncode) == (0, 0), asked.stderr + approved.stderr
    assert (tmp_path / "gh.log").read_text().startswith("t0ken issue comment 7 --body-file ")
    assert set((tmp_path / "tokens").read_text().split()) == {"none"}
    assert "needs an approval** (thread `ci-1`)" in comment
    assert "\ngraph-agent run --resume ci-1 --approve all\n" in comment
    assert comment.count("~~~~") == 4
    assert (tmp_path / "output").read_text() == "exit-code=3\nthread=ci-1\nexit-code=0\nthread=ci-1\n"
    assert (command.workspace / "made.txt").read_text() == "~~~~\n"


def test_the_action_posts_interrupted_calls_and_fails_for_every_other_code(tmp_path: Path) -> None:
    command = Command(tmp_path, settings=NO_SANDBOX)
    running = command.start("run", "run touch begun; sleep 30", "--thread", "ci-2", "--mode", "bypassPermissions")
    until((command.workspace / "begun").exists)
    command.kill(running)

    cut = _act(command, RESUME="ci-2", THREAD="unused", ISSUE="8")
    failed = _act(command, PROMPT="x", THREAD="ci-3", ARGUMENTS="--zzzz", ISSUE="8")

    comment = (tmp_path / "comment.md").read_text()
    assert (cut.returncode, failed.returncode) == (0, 2), cut.stderr
    assert ("interrupted calls" in comment, "\ngraph-agent recover ci-2 --retry CALL" in comment) == (True, True)
    assert len((tmp_path / "gh.log").read_text().splitlines()) == 1
