"""Every command, asked for help and used wrongly in each way it can be."""

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graph_agent.cli.arguments import OTHER_OPTIONS
from graph_agent.cli.main import app
from graph_agent.errors import AgentError
from tests.fakes.parsed_commands import PROGRAM

pytestmark = pytest.mark.slow

PLACEHOLDER = re.compile(r"<[a-z][^>\n]*>")
"""What a parser writes for a value: `<int range>`, `<str>`."""

BAD_VALUES = {
    "mode": "nonsense",
    "status": "nonsense",
    "risk": "nonsense",
    "until": "nonsense",
    "everything": "nonsense",
    "older_than": "soon",
    "max_size": "big",
    "arguments": "no json",
    "workspace": "/nowhere",
    "source": "nowhere.json",
    "json_schema": "nowhere.json",
    "agent": "nobody",
    "effort": "nonsense",
    "notify": "nonsense",
    "format_name": "svg",
    "at": "soon",
    "every": "often",
    "grace": "long",
    "host_label": "two words",
    "repo": "nowhere",
}
"""Values of options that take text of a certain kind."""

FREE = {
    *("model", "add_dir", "thread", "reason", "title", "tool", "env", "header", "url", "as_id", "path", "result"),
    *("output", "backup", "resume", "image", "db", "retry", "done", "cancel", "approve", "reject", "host"),
    *("allow_host", "revision"),
}
"""Options that take any text, and ids: those are tried with unknown ones in test_main.py."""

OPERANDS = {
    "run": ["x"],
    "approvals edit": ["zzzz9999"],
    "policy check": ["bash", "{}"],
    "recover": [],
    "mcp add": ["x"],
}
"""Arguments without which a command does not come to its options."""


NEED_A_TERMINAL = {"chat", "resume"}
"""They say so before anything else."""


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _paths(inner, (*path, name))


ALL = dict(_paths(PROGRAM))
GROUPS = {path: command for path, command in ALL.items() if hasattr(command, "commands")}
SINGLE = {path: command for path, command in ALL.items() if path not in GROUPS}


def _options(command: Any, *, with_value: bool) -> list[Any]:
    found = [one for one in command.params if one.param_type_name == "option"]
    return [one for one in found if not (with_value and one.is_flag) and not one.hidden]


def _typo(name: str) -> str:
    """The name with one letter twice."""
    return name[:3] + name[min(2, len(name) - 1) :]


Row = tuple[tuple[str, ...], tuple[str, ...]]
"""Words to type, and what the message has to contain."""


def help_rows() -> Iterator[Row]:
    for path in ALL:
        for flag in ("-h", "--help"):
            yield (
                (*path, flag),
                (" ".join(("Usage: graph-agent", *path)), "-h, --help", "Examples:" if path in SINGLE else ""),
            )


def unknown_option_rows() -> Iterator[Row]:
    for path, command in ALL.items():
        where = " ".join(("graph-agent", *path, "--help"))
        yield (*path, "--zzzz"), ("Unknown option --zzzz.", where)
        yield (*path, "-Z"), ("Unknown option -Z.", where)
        for name in {one.opts[-1] for one in _options(command, with_value=False)}:
            yield (*path, _typo(name)), (f"Unknown option {_typo(name)}.", "Did you mean --", where)


def explained_option_rows() -> Iterator[Row]:
    """Unknown options whose meaning can be told from the command line."""
    in_quotes = "If it belongs to the text, put the text in quotes. Options: --"
    for line in ("policy check bash pytest -x", "run fix -x", "tasks add fix --zzzz"):
        yield tuple(line.split()), (f"Unknown option {line.split()[-1]}. {in_quotes}",)
    yield ("run", "fix", "--zzzz"), ("--add-dir, --trust, --db.\n",)  # None that the help hides.
    for name, meant in OTHER_OPTIONS.items():
        for line in ("run fix", "-p fix"):
            if (line, meant) != ("run fix", "--print"):
                yield (*line.split(), name), (f"Unknown option {name}. Did you mean {meant}?\n",)


def unknown_command_rows() -> Iterator[Row]:
    for path, command in GROUPS.items():
        for name in command.commands:
            meant = " ".join(("graph-agent", *path, name))
            yield (*path, _typo(name)), ("Unknown command", f"Did you mean `{meant}`")


def missing_rows() -> Iterator[Row]:
    for path, command in ALL.items():
        where = " ".join(("graph-agent", *path))
        for option in _options(command, with_value=True) if path else ():
            if option.name == "resume":
                continue  # Its value is optional.
            yield (
                (*path, *_operands(path, command), option.opts[-1]),
                (f"{option.opts[-1]} needs a value", f"{where} --help"),
            )
        if path and any(one.required for one in command.params):
            yield path, ("missing", f"Usage: {where}", f"{where} --help")


def bad_value_rows() -> Iterator[Row]:
    for path, command in SINGLE.items():
        if not any(one.nargs == -1 or (one.required and one.opts[0][0] == "-") for one in command.params):
            yield (*path, *["extra"] * 9), ("Too many arguments", " ".join(("graph-agent", *path, "--help")))
        for option in _options(command, with_value=True):
            is_text = option.type_descriptor.annotation in (str, list[str])
            if option.name not in FREE and not (is_text and path[0] in NEED_A_TERMINAL):
                value = BAD_VALUES[option.name] if is_text else "nonsense"
                yield (*path, *_operands(path, command), option.opts[-1], value), (value,)
            for bound, beyond in ((option.min, -1), (option.max, 1)):
                if bound is not None:
                    value = str(math.floor(bound) + beyond)
                    yield (*path, *_operands(path, command), option.opts[-1], value), (f"{value!r} is not a",)


def _operands(path: tuple[str, ...], command: Any) -> list[str]:
    required = ["zzzz9999" for one in command.params if one.param_type_name == "argument" and one.required]
    return OPERANDS.get(" ".join(path), required)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))


def _type(words: tuple[str, ...]) -> tuple[int, str, str]:
    """Exit code, standard output and error of a command line, without a terminal."""
    done = CliRunner().invoke(app, words, prog_name="graph-agent", env={"COLUMNS": "100"})
    if isinstance(failure := done.exception, AgentError):  # The boundary of the process prints it so.
        return failure.exit_code, done.stdout, f"{done.stderr}graph-agent: {failure}"
    if failure is not None and not isinstance(failure, SystemExit):
        return done.exit_code, done.stdout, f"Traceback of {failure!r}"
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("rows", "code", "least"),
    [
        (help_rows, 0, 100),
        (unknown_option_rows, 2, 300),
        (explained_option_rows, 2, 20),
        (unknown_command_rows, 2, 50),
        (missing_rows, 2, 100),
        (bad_value_rows, 2, 80),
    ],
)
def test_every_command_answers_help_and_wrong_use_with_what_to_do(
    rows: Callable[[], Iterator[Row]], code: int, least: int
) -> None:
    wrong, count = [], 0
    for words, expected in rows():
        count += 1
        ended, *streams = _type(words)
        said, other = streams if code == 0 else streams[::-1]
        missing = [text for text in expected if text not in said]
        is_technical = "Traceback" in said or PLACEHOLDER.search(said) is not None
        if ended != code or missing or other or is_technical:
            wrong.append((" ".join(words), ended, missing, said[-300:], other[-100:]))

    assert wrong == []
    assert count >= least, count
