"""The commands behind the commands: what wrappers, interpreters and options would run, for rules that deny and ask.

Says too much rather than too little; `policy.wrappers` is the strict counterpart for rules that allow.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from posixpath import basename

from policy.options import dangerous_options, spelled_out
from policy.programs import (
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
)
from policy.rough import rough_commands, rough_endings
from policy.simple import SimpleCommand
from policy.words import holds_code

__all__ = ["assignments_skipped", "everything_run"]

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
