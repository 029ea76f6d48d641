"""The commands behind the commands: what wrappers, shells and `find` would run, for rules that deny and ask."""

import re
from collections.abc import Iterator
from itertools import pairwise
from posixpath import basename

from policy.shell import SimpleCommand, read_shell

__all__ = ["assignments_skipped", "everything_run"]

_WRAPPERS = frozenset(
    [
        "builtin",
        "busybox",
        "chroot",
        "chrt",
        "command",
        "doas",
        "env",
        "exec",
        "firejail",
        "flock",
        "gtime",
        "ionice",
        "nice",
        "nohup",
        "parallel",
        "runuser",
        "script",
        "setsid",
        "stdbuf",
        "strace",
        "sudo",
        "taskset",
        "time",
        "timeout",
        "unshare",
        "watch",
        "xargs",
    ]
)
_SHELLS = frozenset(("ash", "bash", "dash", "fish", "ksh", "sh", "zsh", "su"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_MAX_DEPTH = 8


def assignments_skipped(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words from the program on."""
    for index, word in enumerate(words):
        if not _ASSIGNMENT.match(word):
            return words[index:]
    return ()


def everything_run(commands: tuple[SimpleCommand, ...], depth: int = 0) -> Iterator[SimpleCommand]:
    """Each command without its assignments, under its path-free name too, and all that it would run in turn.

    Says too much rather than too little: of a wrapper, every rest of its words counts as a command.
    """
    for command in commands:
        words = assignments_skipped(command.words)
        if not words:
            continue
        yield from _named(words)
        if depth < _MAX_DEPTH:
            yield from _run_in_turn(basename(words[0]), words, depth + 1)


def _run_in_turn(program: str, words: tuple[str, ...], depth: int) -> Iterator[SimpleCommand]:
    if program == "eval":
        yield from everything_run(read_shell(" ".join(words[1:])).commands, depth)
    elif program in _SHELLS:
        yield from _inline_code(words, depth)
    elif program in _WRAPPERS:
        yield from _wrapped(words, depth)
    elif program == "find":
        for index, word in enumerate(words):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                yield from everything_run((SimpleCommand(words[index + 1 :]),), depth)


def _inline_code(words: tuple[str, ...], depth: int) -> Iterator[SimpleCommand]:
    for word, code in pairwise(words[1:]):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            yield from everything_run(read_shell(code).commands, depth)


def _wrapped(words: tuple[str, ...], depth: int) -> Iterator[SimpleCommand]:
    # One level is enough: the rests of a rest are rests themselves.
    for index in range(1, len(words)):
        rest = assignments_skipped(words[index:])
        if not rest:
            continue
        yield from _named(rest)
        if basename(rest[0]) not in _WRAPPERS:
            yield from _run_in_turn(basename(rest[0]), rest, depth)


def _named(words: tuple[str, ...]) -> Iterator[SimpleCommand]:
    yield SimpleCommand(words)
    program = basename(words[0])
    if program != words[0]:
        yield SimpleCommand((program, *words[1:]))
