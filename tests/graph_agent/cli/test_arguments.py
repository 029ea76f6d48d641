import shlex
import sys
from typing import Any

import pytest
import typer

from graph_agent.cli.arguments import (
    COMMANDS,
    SESSION_FLAGS,
    VALUE_OPTIONS,
    expand_arguments,
    find_similar,
    find_similar_option,
)
from graph_agent.cli.main import app

PROGRAM: Any = typer.main.get_command(app)


class _Stream:
    """A standard stream that is a terminal or is not, and has no file."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def fileno(self) -> int:
        raise OSError


def _expand(line: str, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> str:
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, _Stream(is_terminal=is_terminal))
    expanded = expand_arguments(shlex.split(line))
    assert expand_arguments(expanded) == expanded
    return shlex.join(expanded)


@pytest.mark.parametrize(
    ("line", "in_terminal", "elsewhere"),
    [
        ("'fix it'", "chat -- 'fix it'", "run -- 'fix it'"),
        ("hello", "chat -- hello", "run -- hello"),
        ("-- theads", "chat -- theads", "run -- theads"),
        ("-- --odd", "chat -- --odd", "run -- --odd"),
        ("-c", "chat -c", "run -c --keep-stopped"),
        ("-c 'and now'", "chat -c -- 'and now'", "run -c -- 'and now'"),
        ("-r shop", "chat -r shop", "run -r shop --keep-stopped"),
        ("-r shop more", "chat -r shop -- more", "run -r shop -- more"),
        ("--resume=shop -m fast", "chat --resume=shop -m fast", "run --resume=shop -m fast --keep-stopped"),
        ("-r -m fast", "chat -r -m fast", "run -r -m fast --keep-stopped"),
        (
            "-mfast 'fix it' --mode plan",
            "chat -mfast --mode plan -- 'fix it'",
            "run -mfast --mode plan -- 'fix it'",
        ),
        ("-i a.png 'what is this?'", "chat -i a.png -- 'what is this?'", "run -i a.png -- 'what is this?'"),
        ("--debug 'fix it'", "--debug chat -- 'fix it'", "--debug run -- 'fix it'"),
    ],
)
def test_a_line_without_a_command_is_a_chat_on_a_terminal_and_a_run_elsewhere(
    monkeypatch: pytest.MonkeyPatch, line: str, in_terminal: str, elsewhere: str
) -> None:
    assert _expand(line, monkeypatch, is_terminal=True) == in_terminal
    assert _expand(line, monkeypatch, is_terminal=False) == elsewhere


@pytest.mark.parametrize(
    ("line", "expanded"),
    [
        ("-p 'fix it'", "run --piped-input -- 'fix it'"),
        ("-p threads", "run --piped-input -- threads"),
        ("-p theads", "run --piped-input -- theads"),
        ("--print 'fix it' --output json", "run --output json --piped-input -- 'fix it'"),
        ("--print='fix it' -c", "run -c --piped-input -- 'fix it'"),
        ("-p --output json 'fix it'", "run --output json --piped-input -- 'fix it'"),
        ("'-pfix it'", "run --piped-input -- 'fix it'"),
        ("-p", "run -"),
        # `run -p` is said twice, and means it once.
        ("run -p 'fix it'", "run --piped-input -- 'fix it'"),
        ("run 'fix it' -p --output json", "run --output json --piped-input -- 'fix it'"),
        ("--debug run --mode plan --print='fix it'", "--debug run --mode plan --piped-input -- 'fix it'"),
        ("run -p", "run -"),
        ("run -p hi --zzzz", "--zzzz run -p hi"),
        ("run 'fix it' --reason -p", "run 'fix it' --reason -p"),
        ("run -- -p", "run -- -p"),
        ("-p -", "run -- -"),
        ("-c -p", "run -c -"),
        ("-m fast run 'fix it'", "run 'fix it' -m fast"),
        ("--db x threads list --json", "threads list --json --db x"),
        ("--db x mcp add n -- server -v", "mcp add n --db x -- server -v"),
        ("--debug --model m chat", "--debug chat --model m"),
        ("help", "--help"),
        ("help threads list", "threads list --help"),
        # What only the parser can answer is left to it.
        ("", ""),
        ("run x", "run x"),
        ("threads", "threads"),
        ("--version", "--version"),
        ("-h", "-h"),
        ("--install-completion", "--install-completion"),
        ("--moedl x 'fix it'", "--moedl x 'fix it'"),
        ("theads", "theads"),
        ("-m fast theads", "theads"),
        ("theads list", "theads list"),
        ("approve 1a2b", "approve 1a2b"),
        ("fix it", "fix it"),
        ("-p hi --zzzz json", "--zzzz json -p hi"),
        ("-c -m small -Z", "-Z -c -m small"),
        ("-p hi --help", "--help -p hi"),
    ],
)
@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_place_does_not_matter_for_other_lines(
    monkeypatch: pytest.MonkeyPatch, line: str, expanded: str, is_terminal: bool
) -> None:
    assert _expand(line, monkeypatch, is_terminal=is_terminal) == expanded


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("theads", ["threads"]),
        ("thread", ["threads"]),
        ("reusme", ["resume"]),
        ("inspct", ["inspect"]),
        ("approval", ["approvals"]),
        ("approve", ["approvals approve"]),
        ("trust", ["config trust", "mcp trust"]),
        ("models", ["model"]),
        ("exec", ["run"]),
        ("sessions", ["threads list"]),
        ("version", ["--version"]),
        *((word, []) for word in ("hello", "frobnicate", "commit", "refactor", "review", "你好", "fix it")),
        *((word, []) for word in ("prices.py", "@prices.py", "/fix", "42")),
    ],
)
def test_a_word_that_is_nearly_a_command_is_told_from_a_prompt(word: str, meant: list[str]) -> None:
    assert find_similar(word) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("--moedl", ["--model"]),
        ("--modle", ["--model"]),
        ("--contineu", ["--continue"]),
        ("--yolo", ["--dangerously-skip-permissions"]),
        ("--output-format", ["--output"]),
        ("--zzzz", []),
    ],
)
def test_an_option_that_is_nearly_right_is_recognized(name: str, meant: list[str]) -> None:
    assert find_similar_option(name) == meant


def test_the_tables_agree_with_the_parser() -> None:
    commands = {name: tuple(getattr(one, "commands", {})) for name, one in PROGRAM.commands.items()}
    options = [one for name in ("chat", "run") for one in PROGRAM.commands[name].params if one.opts[0][0] == "-"]

    assert {name: set(inner) for name, inner in COMMANDS.items()} == {
        name: set(inner) for name, inner in commands.items()
    }
    assert {name for one in options if not one.is_flag for name in one.opts} - {"-r", "--resume"} == VALUE_OPTIONS
    assert {name for one in options if one.is_flag for name in one.opts} == SESSION_FLAGS
