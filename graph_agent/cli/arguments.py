"""The short form of the command line, `graph-agent [OPTIONS] [PROMPT]`, as the command that it stands for.

Imports nothing slow: it is used before the parser is loaded.
"""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = [
    "COMMANDS",
    "OTHER_OPTIONS",
    "SESSION_FLAGS",
    "VALUE_OPTIONS",
    "expand_arguments",
    "find_similar",
    "find_similar_option",
    "is_piped_input",
    "read_stdin",
]

COMMANDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("chat", "run", "resume", "inspect", "fork", "rewind", "compact", "calls", "recover"), ()),
    **dict.fromkeys(("history", "graph", "diff", "doctor", "update", "init", "acp", "web", "demo"), ()),
    **dict.fromkeys(("worker", "top"), ()),
    "tasks": ("add", "list", "show", "cancel", "retry"),
    "worktrees": ("list", "remove"),
    "threads": ("list", "show", "diff", "prune", "search", "rename", "delete", "export", "import", "say"),
    "approvals": ("list", "approve", "reject", "answer", "edit"),
    "policy": ("list", "revoke", "check", "test", "show"),
    "tools": ("list", "show", "stats"),
    "agents": ("list", "show"),
    "memory": ("show", "edit", "forget", "undo"),
    "config": ("show", "path", "set", "trust", "explain"),
    "mcp": ("list", "add", "remove", "trust", "login", "logout", "test"),
    "model": ("local", "list", "use", "show", "forget", "test"),
    "db": ("copy",),
}
"""Every command with its sub-commands; a test compares it with the parser."""

VALUE_OPTIONS = frozenset(
    (
        *("-m", "--model", "--mode", "--workspace", "--add-dir", "--db", "--thread", "-i", "--image", "--output"),
        *("--input-format", "--json-schema"),
        *("--agent", "--effort", "--approve", "--reject", "--reason", "--recover", "--timeout", "--notify"),
        *("--max-steps", "--max-tokens", "--max-cost"),
    )
)
"""Options of `chat` and `run` that take a value."""

SESSION_FLAGS = frozenset(
    (
        "-c",
        "--continue",
        "--dangerously-skip-permissions",
        "--no-stream",
        "--trust",
        "--piped-input",
        "--keep-stopped",
        "--worktree",
        "--submit",
    )
)
"""Their other options, but for `--resume`, whose value is optional."""

_RESUME, _PRINT = ("-r", "--resume"), ("-p", "--print")
_OWN_FLAGS = ("--debug",)
"""Options of the program that go before a command."""

_OTHER_WORDS = {
    "exec": "run",
    "ask": "run",
    "continue": "resume",
    "session": "threads list",
    "sessions": "threads list",
    "permissions": "policy list",
    "settings": "config show",
    "undo": "rewind --undo",
    "version": "--version",
    "upgrade": "update",
}
"""What other agents call our commands."""

OTHER_OPTIONS: Mapping[str, str] = {
    "--yolo": "--dangerously-skip-permissions",
    "--dangerously-bypass-approvals-and-sandbox": "--dangerously-skip-permissions",
    "--permission-mode": "--mode",
    "--approval-mode": "--mode",
    "--output-format": "--output",
    "--json": "--output json",
    "--max-turns": "--max-steps",
    "--session": "--thread",
    "--cd": "--workspace",
    "--prompt": "--print",
}
"""What other agents, or other commands of this program, call our options."""

_SIMILARITY = 0.75
_SHORTEST_PREFIX = 3


@dataclass(slots=True)
class _Line:
    """A command line, taken apart."""

    own: list[str] = field(default_factory=list)
    """Options of the program itself."""
    options: list[str] = field(default_factory=list)
    """Options of the session before any command."""
    words: list[str] = field(default_factory=list)
    """The prompt; more than one word if it was not quoted."""
    remaining: list[str] | None = None
    """From the command on, if there is one."""
    others: list[str] = field(default_factory=list)
    """From the first option on that only the parser can answer: an unknown one, or one of the program itself."""
    is_printing: bool = False
    is_literal: bool = False
    """Whether `--` came before the words."""


def expand_arguments(arguments: Sequence[str]) -> list[str]:
    """The command line with its command: `chat` on a terminal, `run` elsewhere and with `--print`.

    A line that begins with a command keeps it; options before it move behind it. A line that the parser has to
    explain (an unknown option, a mistyped command, a prompt without quotes) is left for it, the option first. The
    result expands to itself.
    """
    line = _take_apart(arguments)
    if line.others or not (line.remaining or line.options or line.words or line.is_printing):
        # The parser does not know the options before the other either, and would blame the first of them.
        return [*line.others, *arguments[: len(arguments) - len(line.others)]]
    if line.remaining is not None:
        return [*line.own, *_insert_options(line.remaining, line.options)]
    if not (line.is_printing or line.is_literal) and line.words:
        if line.words[0] == "help":
            return [*line.own, *line.words[1:], "--help"]
        if len(line.words) > 1 or find_similar(line.words[0]):
            return [*line.own, *line.words]
    if line.is_printing or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return [*line.own, "run", *_run_arguments(line)]
    prompt = ["--", *line.words] if line.words else []
    return [*line.own, "chat", *line.options, *prompt]


def _run_arguments(line: _Line) -> list[str]:
    if not line.words:
        # Without a prompt, `-c` and `-r` do not ask to restart a turn that the user has stopped.
        return [*line.options, "-" if line.is_printing or is_piped_input() else "--keep-stopped"]
    is_piped = line.is_printing and line.words != ["-"]
    return [*line.options, *(["--piped-input"] if is_piped else []), "--", *line.words]


def read_stdin() -> str:
    """All of stdin, as text in any encoding that editors write; see `plain_text`."""
    from graph_agent.config.paths import plain_text

    return plain_text(sys.stdin.buffer.read())


def is_piped_input() -> bool:
    """Whether stdin is a pipe, a socket or a file: neither a terminal nor /dev/null."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _take_apart(arguments: Sequence[str]) -> _Line:
    line, remaining = _Line(), list(arguments)
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            line.words, line.is_literal = [*line.words, *remaining], True
            break
        if word == "-" or not word.startswith("-"):
            if not line.words and word in COMMANDS:
                if word == "run" and (printing := _take_apart([*line.own, *line.options, *remaining])).is_printing:
                    return printing  # `run -p TEXT`, as other agents spell it
                line.remaining = [word, *remaining]
                break
            line.words.append(word)
        elif not _take_option(line, word, remaining):
            line.others = [word, *remaining]
            break
    return line


def _take_option(line: _Line, word: str, remaining: list[str]) -> bool:
    """Add an option to the line, with its value from the remaining words; False if it is unknown here."""
    is_long = word.startswith("--")
    name = word.partition("=")[0] if is_long else word[:2]
    if name in _PRINT:
        line.is_printing = True
        joined = word.removeprefix("--print=") if is_long else word[2:]
        line.words += _optional_value(remaining) if word == name else [joined]
    elif name in _RESUME:
        line.options += [word, *(_optional_value(remaining) if word == name else ())]
    elif name in VALUE_OPTIONS:
        line.options += [word, *(remaining[:1] if word == name else ())]
        del remaining[: word == name]
    elif word in SESSION_FLAGS:
        line.options.append(word)
    elif word in _OWN_FLAGS:
        line.own.append(word)
    else:
        return False
    return True


def _optional_value(remaining: list[str]) -> list[str]:
    """Remove and return the next word unless it is an option or there is none."""
    if not remaining or (remaining[0].startswith("-") and remaining[0] != "-"):
        return []
    return [remaining.pop(0)]


def _insert_options(remaining: Sequence[str], options: Sequence[str]) -> list[str]:
    """The options behind the command and its sub-command, before `--`."""
    end = remaining.index("--") if "--" in remaining else len(remaining)
    return [*remaining[:end], *options, *remaining[end:]]


def find_similar(word: str) -> list[str]:
    """Commands that a word may be meant as; a sub-command with its command, e.g. `approvals approve`."""
    if word in _OTHER_WORDS:
        return [_OTHER_WORDS[word]]
    if inner := [f"{name} {word}" for name, commands in COMMANDS.items() if word in commands]:
        return inner
    if not word.replace("-", "").isalpha():
        return []
    import difflib  # only a word that is no command needs it

    longer = [name for name in COMMANDS if len(word) >= _SHORTEST_PREFIX and name.startswith(word)]
    return longer or difflib.get_close_matches(word, COMMANDS, n=1, cutoff=_SIMILARITY)


def find_similar_option(name: str) -> list[str]:
    """Options of a line without a command that the name may be meant as."""
    if name in OTHER_OPTIONS:
        return [OTHER_OPTIONS[name]]
    import difflib  # as above

    known = (*VALUE_OPTIONS, *SESSION_FLAGS, *_RESUME, *_PRINT, *_OWN_FLAGS, "--help", "--version")
    near = difflib.get_close_matches(name, sorted(one for one in known if one.startswith("--")))
    # Two letters that changed places are the likelier slip: --modle is --model rather than --mode.
    return sorted(near, key=lambda one: sorted(one) != sorted(name))[:1]
