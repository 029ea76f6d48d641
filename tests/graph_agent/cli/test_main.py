import os
import subprocess
import sys
from pathlib import Path

import pytest

_HEAVY = (
    "langgraph",
    "langchain_core",
    "langchain_openai",
    "openai",
    "rich",
    "prompt_toolkit",
    "sqlite3",
    "asyncio",
)


def _run(
    *arguments: str, stdin: str = "", cwd: Path | None = None, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-m", "graph_agent", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env=dict(os.environ),
        timeout=30,
    )


def test_version_is_one_line() -> None:
    ended = _run("--version")

    assert (ended.returncode, ended.stdout.split()[0], ended.stdout.count("\n")) == (0, "graph-agent", 1)


def test_help_lists_the_commands_without_escapes() -> None:
    ended = _run("--help")

    listed = ["chat", "run", "resume", "threads", "approvals", "calls", "inspect"]
    assert (ended.returncode, [name for name in listed if f"\n  {name} " in ended.stdout]) == (0, listed)
    assert "\x1b" not in ended.stdout


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_load_nothing_heavy(argument: str) -> None:
    ended = _run(argument, options=("-X", "importtime"))

    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in ended.stderr.splitlines()}
    assert loaded & set(_HEAVY) == set()


def test_no_command_and_empty_stdin_is_a_usage_error_on_stderr() -> None:
    ended = _run()

    assert (ended.returncode, ended.stdout, ended.stderr.startswith("Usage: graph-agent")) == (2, "", True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("frobnicate",), "frobnicate"),
        (("run",), "nothing to do"),
        (("run", "-"), "nothing to do"),
        (("run", "x", "--output", "yaml"), "yaml"),
        (("run", "x", "--workspace", "/no/such/folder"), "is not a folder"),
        (("run", "x", "--thread", "a", "--resume", "b"), "twice"),
        (("chat",), "needs a terminal"),
    ],
)
def test_what_cannot_be_served_ends_with_2_and_says_why(arguments: tuple[str, ...], words: str) -> None:
    ended = _run(*arguments)

    assert (ended.returncode, ended.stdout, words in ended.stderr) == (2, "", True)


def test_resuming_where_nothing_is_yet_says_so() -> None:
    ended = _run("run", "--resume", "abcd1234")

    assert (ended.returncode, ended.stderr.count("\n"), "Traceback" in ended.stderr) == (2, 1, False)


def test_a_workspace_with_tools_and_policy_folders_of_its_own_is_no_obstacle(tmp_path: Path) -> None:
    for name in ("tools", "policy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong package')")

    ended = _run("run", "list", cwd=tmp_path)

    assert "the wrong package" not in ended.stderr + ended.stdout
