"""The commands behind the commands: what wrappers, interpreters and options would run, for rules that deny and ask.

Says too much rather than too little; `policy.shell.commands` is the strict counterpart for rules that allow.

What a wrapper runs, exactly: an allow rule must cover the inner command too, so nothing here is guessed.

What might be run by a text that cannot be read: too much rather than too little, for rules that deny and ask.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from posixpath import basename
from typing import NamedTuple

from policy.shell.options import (
    COMMANDING,
    EVALUATING,
    LANGUAGES,
    RUN_BY_GIT,
    RUN_FED,
    RUN_HERE,
    RUN_LATER,
    SHELLS,
    TAKING_CODE,
    WRAPPERS,
    WRAPS_AFTER,
    dangerous_options,
    spelled_out,
)
from policy.shell.words import SimpleCommand, holds_code

__all__ = ["assignments_skipped", "everything_run", "inner_commands", "rough_commands", "rough_endings"]

_CUTS = re.compile(r"[;&|\n\r(){}<>`]+|\$\(")
_QUOTES = re.compile(r"[\"'\\]")
_BEFORE_A_COMMAND = re.compile(
    r"!|if|then|elif|else|do|while|until|time|coproc|[A-Za-z_]\w*(?:\[.*\])?\+?=.*", re.DOTALL
)
_MOST_BEFORE = 50
"""So many words before a command are each taken for its beginning; of more, the first of them and the command."""


def rough_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Everything between two signs that could separate commands, with and without its quotes."""
    found: dict[tuple[str, ...], None] = {}
    for part in _CUTS.split(text):
        for form in (_QUOTES.sub("", part), *re.split(r"[\"']", part)):
            words = tuple(form.split())
            first = next((at for at, word in enumerate(words) if not _BEFORE_A_COMMAND.fullmatch(word)), len(words))
            for at in (*range(min(first, _MOST_BEFORE)), first):
                if at < len(words):
                    found[words[at:]] = None
    return tuple(SimpleCommand(words) for words in found)


def rough_endings(text: str) -> tuple[SimpleCommand, ...]:
    """What is found in a language that puts a sign or a word of its own before a command: every ending."""
    found: dict[tuple[str, ...], None] = {}
    for command in rough_commands(text):
        for at, word in enumerate(command.words):
            found[(word.lstrip("!:.+-*@"), *command.words[at + 1 :])] = None
    return tuple(SimpleCommand(words) for words in found)


Read = Callable[[str], tuple[SimpleCommand, ...]]
"""The simple commands of a piece of shell code."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_MAX_DEPTH = 8
_GIT_VALUE_OPTIONS = frozenset(
    ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env")
)


def assignments_skipped(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words from the program on."""
    for index, word in enumerate(words):
        if not _ASSIGNMENT.match(word):
            return words[index:]
    return ()


def everything_run(commands: Iterable[SimpleCommand], read: Read, depth: int = 0) -> Iterator[SimpleCommand]:
    """Each command without its assignments, under its other names too, and all that it would run in turn.

    Inner commands come with their assignments as well.
    """
    for command in commands:
        words = assignments_skipped(command.words)
        skipped = len(command.words) - len(words)
        if depth < _MAX_DEPTH:
            for code in _in_variables(command.words[:skipped]):
                yield from _run_within((*command.shell, 0), read(code), read, depth + 1)
        if not words:
            continue
        if skipped and depth:
            yield command
        patterns = frozenset(at - skipped for at in command.patterns if at >= skipped)
        plain = replace(command, words=words, patterns=patterns)
        yield from _named(plain)
        if depth < _MAX_DEPTH:
            yield from _run_in_turn(plain, read, depth + 1)
            if words[0].startswith("$"):
                # It may come to nothing: then the next word is the program.
                rest = replace(plain, words=words[1:], patterns=frozenset())
                yield from everything_run((rest,), read, depth + 1)


def _run_within(
    shell: tuple[int | str, ...], commands: Iterable[SimpleCommand], read: Read, depth: int
) -> Iterator[SimpleCommand]:
    inner = (replace(command, shell=(*shell, *command.shell)) for command in commands)
    return everything_run(inner, read, depth)


def _shell_behind(command: SimpleCommand) -> tuple[int | str, ...]:
    """The shell in which a command runs what its words say."""
    return command.shell if basename(command.words[0]) in RUN_HERE else (*command.shell, 0)


def _in_variables(assignments: tuple[str, ...]) -> Iterator[str]:
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        if RUN_LATER.fullmatch(name.rstrip("+")):
            yield value.lstrip("!")
            if name == "GIT_CONFIG_PARAMETERS":
                yield value.strip("'").partition("=")[2].lstrip("!")
        elif holds_code(value):
            yield _expanding(value)


def _expanding(text: str) -> str:
    """Code that runs what an expansion of the text would run, and nothing else."""
    return f": <<END_OF_TEXT\n{text}\nEND_OF_TEXT"


def _run_in_turn(command: SimpleCommand, read: Read, depth: int) -> Iterator[SimpleCommand]:
    words, stdin, shell = command.words, command.stdin, _shell_behind(command)
    program = basename(words[0])
    for code in _code_in(program, words, stdin):
        yield from _run_within(shell, read(code), read, depth)
    yield from (replace(one, shell=shell) for one in _in_other_languages(program, words, stdin))
    if program in WRAPPERS:
        yield from _wrapped((*words, *stdin.split()) if program == "xargs" else words, shell, read, depth)
    elif program in WRAPS_AFTER:
        at = next((index for index, word in enumerate(words) if word in WRAPS_AFTER[program]), len(words))
        yield from _wrapped(words[at:], shell, read, depth)
    elif program == "find":
        for index, word in enumerate(words):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                yield from everything_run((SimpleCommand(words[index + 1 :], shell=shell),), read, depth)


def _in_other_languages(program: str, words: tuple[str, ...], stdin: str) -> Iterator[SimpleCommand]:
    if LANGUAGES.fullmatch(program):
        for code in (*words[1:], stdin):
            yield from rough_commands(code)
    elif program in COMMANDING:
        for code in (*(word for word in words[1:] if re.search(r"[\s!]", word)), stdin):
            yield from rough_endings(code)
    elif program in ("make", "gmake"):
        yield from rough_endings(stdin)


def _code_in(program: str, words: tuple[str, ...], stdin: str) -> Iterator[str]:
    """Words of a command that are shell code themselves."""
    if program in SHELLS:
        yield from (*words[1:], stdin)
    elif program in RUN_FED:
        yield stdin
    elif program in EVALUATING:
        yield from (_expanding(word) for word in words[1:] if holds_code(word))
    elif program in TAKING_CODE:
        # `env` takes its words apart only where an option says so; else they are a command with its words.
        if program != "env" or any(word.startswith("-") and "s" in word.lower() for word in words[1:]):
            yield " ".join(words[1:])
        yield from (_after_option(word) for word in words[1:] if " " in word)
    else:
        yield from _in_options(program, words)
        if program in ("git", "make", "gmake"):
            yield from (_value(word) for word in words[1:] if "=" in word)
        if program == "git" and RUN_BY_GIT.intersection(words):
            yield from (word.lstrip("!") for word in words[1:] if " " in word or word.startswith("!"))
            yield from (word.removeprefix("ext::") for word in words[1:] if word.startswith("ext::"))


def _in_options(program: str, words: tuple[str, ...]) -> Iterator[str]:
    """What `--to-command=…`, `-P …` and their like name is run by a shell."""
    options = dangerous_options(program, words[1:])
    for index, word in enumerate(words):
        if word in options:
            yield word.partition("=")[2].removeprefix("exec=").lstrip("!") if "=" in word else word[2:]
            yield from words[index + 1 : index + 2]


def _value(word: str) -> str:
    return re.sub(r"\$([({])shell\s", r"$\1 ", word.partition("=")[2].lstrip("!"))


def _after_option(word: str) -> str:
    return re.sub(r"^(?:-\w*S|--split-string=|-?\w*Command\s+|-?\w+=)", "", word)


def _wrapped(
    words: tuple[str, ...], shell: tuple[int | str, ...], read: Read, depth: int
) -> Iterator[SimpleCommand]:
    # One level is enough: the rests of a rest are rests themselves. One interpreter of a kind is, too: it is taken
    # to read every word behind it.
    interpreters: set[str] = set()
    for index in range(1, len(words)):
        rest = assignments_skipped(words[index:])
        if not rest:
            continue
        if rest != words[index:]:
            yield SimpleCommand(words[index:], shell=shell)
        inner = SimpleCommand(rest, shell=shell)
        yield from _named(inner)
        program = basename(rest[0])
        kind = "shell" if program in SHELLS else "language" if LANGUAGES.fullmatch(program) else ""
        if program in WRAPPERS:
            shell = _shell_behind(inner)
        elif kind not in interpreters:
            yield from _run_in_turn(inner, read, depth)
        if kind:
            interpreters.add(kind)


def _named(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """The command as it stands, by its bare name with options spelled out, and without git's own options."""
    yield command
    program, *rest = command.words
    plain = replace(command, words=(basename(program), *spelled_out(basename(program), rest)))
    if plain.words != command.words:
        yield plain
    if plain.words[0] == "git" and len(rest) > 1 and rest[0].startswith("-"):
        yield replace(command, words=("git", *_from_subcommand(plain.words[1:])), patterns=frozenset())


def _from_subcommand(words: tuple[str, ...]) -> tuple[str, ...]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUE_OPTIONS else 1
    return words[at:]


class _Wrapper(NamedTuple):
    flags: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options with one."""
    operands: int = 0
    """Words before the command."""


_WRAPPERS: Mapping[str, _Wrapper | None] = {
    "builtin": _Wrapper(),
    "busybox": None,
    "chroot": None,
    "chrt": None,
    "command": _Wrapper("p"),
    "doas": _Wrapper("n", "u"),
    "env": _Wrapper("i0v", "uC"),
    "exec": _Wrapper("cl", "a"),
    "firejail": None,
    "flock": None,
    "gtime": None,
    "ionice": _Wrapper("t", "cn"),
    "nice": _Wrapper("", "n"),
    "nohup": _Wrapper(),
    "parallel": None,
    "runuser": None,
    "script": None,
    "setsid": _Wrapper("cfw"),
    "ssh": None,
    "stdbuf": _Wrapper("", "ioe"),
    "strace": None,
    "sudo": _Wrapper("nEHk", "ugp"),
    "taskset": None,
    "time": _Wrapper("p"),
    "timeout": _Wrapper("vfp", "ks", operands=1),
    "unshare": None,
    "watch": None,
    "xargs": _Wrapper("0rtx", "nPILsdEa"),
}
"""None: how it takes its command is not known here."""
_EXECUTES = ("-exec", "-execdir", "-ok", "-okdir")


def inner_commands(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...] | None:
    """The commands a wrapper, or `find`, would run; empty for other programs, None where that is not certain."""
    program = basename(words[0])
    if program == "find":
        return _executed(words)
    if program not in _WRAPPERS:
        return ()
    wrapper = _WRAPPERS[program]
    rest = None if wrapper is None else _rest(wrapper, words[1:])
    if rest is None:
        return None
    return (rest,) if rest else ()


def _rest(wrapper: _Wrapper, words: tuple[str, ...]) -> tuple[str, ...] | None:
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        step = _values_of(wrapper, word)
        if step is None:
            return None
        at += step
    return words[at + wrapper.operands :]


def _values_of(wrapper: _Wrapper, word: str) -> int | None:
    """How many words the option takes besides its own; None for an unknown one."""
    if word.startswith("--"):
        return None
    for index, letter in enumerate(word[1:], start=1):
        if letter in wrapper.valued:
            return 0 if index < len(word) - 1 else 1
        if letter not in wrapper.flags:
            return None
    return 0


def _executed(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = []
    for index, word in enumerate(words):
        if word not in _EXECUTES:
            continue
        rest = words[index + 1 :]
        end = next((at for at, each in enumerate(rest) if each in (";", "+")), len(rest))
        found.append(rest[:end])
    return tuple(found)
