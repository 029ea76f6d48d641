import os
import subprocess
import sys

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


def _run(*arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-m", "graph_agent", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
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


def test_an_unknown_command_is_a_usage_error() -> None:
    ended = _run("frobnicate")

    assert (ended.returncode, ended.stdout, "frobnicate" in ended.stderr) == (2, "", True)
