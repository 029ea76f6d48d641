"""The commands behind a command: what wrappers, interpreters and options would run.

`expand_commands` finds too much rather than too little, for rules that deny and ask. `wrapped_commands` is exact,
for rules that allow. `guess_commands` is for texts that cannot be parsed.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import dropwhile
from posixpath import basename
from typing import assert_never

from policy.shell.arguments import GIT_VALUED, expand_abbreviations, harmful_options, only_reads
from policy.shell.git_table import GIT_COMMANDS_THAT_RUN
from policy.shell.program_table import program_named
from policy.shell.programs import RUN_AS_CODE, Program, WrapperSyntax, steers_programs
from policy.shell.words import SimpleCommand, holds_code

__all__ = [
    "builtin_words",
    "changes_folder",
    "computed_program_reason",
    "expand_commands",
    "guess_command_suffixes",
    "guess_commands",
    "without_assignments",
    "wrapped_commands",
]

ParseCode = Callable[[str], tuple[SimpleCommand, ...]]
"""The simple commands of a piece of shell code."""
ShellPath = tuple[int | str, ...]
"""As in `SimpleCommand.shell`."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_CHANGES_FOLDER = frozenset(("cd", "dirs", "popd", "pushd"))
_MAX_DEPTH = 8


def without_assignments(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words from the program on."""
    for index, word in enumerate(words):
        if not _ASSIGNMENT.match(word):
            return words[index:]
    return ()


def builtin_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words from a built-in on, also if `command` or `builtin` runs it."""
    words = without_assignments(words)
    while len(words) > 1 and words[0] in ("builtin", "command"):
        words = tuple(dropwhile(lambda word: word.startswith("-"), words[1:]))
    return words


def changes_folder(words: tuple[str, ...]) -> bool:
    """Whether a command with these words changes the folder of its shell."""
    return not _CHANGES_FOLDER.isdisjoint(builtin_words(words)[:1])


def expand_commands(commands: Iterable[SimpleCommand], parse: ParseCode, depth: int = 0) -> Iterator[SimpleCommand]:
    """Each command without its assignments, in every spelling that rules may use, and all that it would run.

    Inner commands come with their assignments as well.
    """
    for command in commands:
        words = without_assignments(command.words)
        skipped = len(command.words) - len(words)
        if depth < _MAX_DEPTH:
            for code in _code_in_assignments(command.words[:skipped]):
                yield from _expand_inner((*command.shell, 0), parse(code), parse, depth + 1)
        if not words:
            continue
        if skipped and depth:
            yield command
        plain = _from_word(command, skipped)
        yield from _spellings(plain)
        if depth < _MAX_DEPTH:
            yield from _run_in_turn(plain, parse, depth + 1)
            if words[0].startswith("$"):
                # The variable may be empty: then the next word is the program.
                following = _from_word(plain, 1)
                yield from expand_commands((following,), parse, depth + 1)


def _from_word(command: SimpleCommand, start: int) -> SimpleCommand:
    """The command without its first words."""
    patterns, computed = (
        frozenset(at - start for at in positions if at >= start)
        for positions in (command.patterns, command.computed)
    )
    return replace(command, words=command.words[start:], patterns=patterns, computed=computed)


def _expand_inner(
    shell: ShellPath, commands: Iterable[SimpleCommand], parse: ParseCode, depth: int
) -> Iterator[SimpleCommand]:
    inner = (replace(command, shell=(*shell, *command.shell)) for command in commands)
    return expand_commands(inner, parse, depth)


def _code_in_assignments(assignments: tuple[str, ...]) -> Iterator[str]:
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        if RUN_AS_CODE.fullmatch(name.rstrip("+")):
            yield value.lstrip("!")
            if name == "GIT_CONFIG_PARAMETERS":
                yield value.strip("'").partition("=")[2].lstrip("!")
        elif holds_code(value):
            yield _expansions_of(value)


def _expansions_of(text: str) -> str:
    """Code that runs what an expansion of the text would run, and nothing else."""
    return f": <<END_OF_TEXT\n{text}\nEND_OF_TEXT"


def _spellings(command: SimpleCommand) -> Iterator[SimpleCommand]:
    """The command as written, by its bare name with options in full, and without git's own options."""
    yield command
    program, *arguments = command.words
    name = basename(program)
    plain = replace(command, words=(name, *expand_abbreviations(name, arguments)))
    if plain.words != command.words:
        yield plain
    if name == "git" and len(arguments) > 1 and arguments[0].startswith("-"):
        at = 1
        while at < len(plain.words) and plain.words[at].startswith("-"):
            at += 2 if plain.words[at] in GIT_VALUED else 1
        yield replace(command, words=("git", *plain.words[at:]), patterns=frozenset(), computed=frozenset())


def _run_in_turn(command: SimpleCommand, parse: ParseCode, depth: int) -> Iterator[SimpleCommand]:
    words, stdin, shell = command.words, command.stdin, _inner_shell(command)
    name = basename(words[0])
    program = program_named(name)
    for code in _shell_code(name, program, words, stdin):
        yield from _expand_inner(shell, parse(code), parse, depth)
    yield from (replace(one, shell=shell) for one in _guess_in_other_languages(name, program, words, stdin))
    if program.wraps:
        yield from _run_by_wrapper((*words, *stdin.split()) if name == "xargs" else words, shell, parse, depth)
    elif program.wraps_after:
        at = next((index for index, word in enumerate(words) if word in program.wraps_after), len(words))
        yield from _run_by_wrapper(words[at:], shell, parse, depth)
    elif program.wraps_until:
        for index, word in enumerate(words):
            if word in program.wraps_until:
                yield from expand_commands((SimpleCommand(words[index + 1 :], shell=shell),), parse, depth)


def _inner_shell(command: SimpleCommand) -> ShellPath:
    """The shell in which a command runs what its words contain."""
    return command.shell if program_named(basename(command.words[0])).runs_here else (*command.shell, 0)


def _shell_code(name: str, program: Program, words: tuple[str, ...], stdin: str) -> Iterator[str]:
    """Words of a command that are shell code themselves, and its input where that is."""
    match program.code:
        case "shell":
            yield from (*words[1:], stdin)
        case "stdin":
            yield stdin
        case "index":
            yield from (_expansions_of(word) for word in words[1:] if holds_code(word))
        case "words":
            # `env` splits its words only where an option tells it to; otherwise they are a command with its words.
            if name != "env" or any(word.startswith("-") and "s" in word.lower() for word in words[1:]):
                yield " ".join(words[1:])
            option = r"^(?:-\w*S|--split-string=|-?\w*Command\s+|-?\w+=)"
            yield from (re.sub(option, "", word) for word in words[1:] if " " in word)
        case "" | "language" | "editor":
            yield from _code_in_options(name, words)
        case _:
            assert_never(program.code)


def _code_in_options(name: str, words: tuple[str, ...]) -> Iterator[str]:
    """What a shell runs for `--to-command=…`, `-P …` and similar options, `NAME=VALUE` of make, commands of git."""
    for option in harmful_options((name, *words[1:])):
        yield option.value.removeprefix("exec=").lstrip("!")
        if not option.value:
            index = words.index(option.words[0])
            yield from words[index + 1 : index + 2]
    if name in ("git", "make", "gmake"):
        values = [word.partition("=")[2].lstrip("!") for word in words[1:] if "=" in word]
        # `--eval` takes a makefile for its value.
        values += [word for word in words[1:] if name != "git" and "=" not in word and re.search(r"[\s$:]", word)]
        yield from (re.sub(r"\$([({])shell\s", r"$\1 ", value) for value in values)
    if name == "git" and GIT_COMMANDS_THAT_RUN.intersection(words):
        yield from (word.lstrip("!") for word in words[1:] if " " in word or word.startswith("!"))
        yield from (word.removeprefix("ext::") for word in words[1:] if word.startswith("ext::"))


def _guess_in_other_languages(
    name: str, program: Program, words: tuple[str, ...], stdin: str
) -> Iterator[SimpleCommand]:
    if program.code == "language":
        for guess in (one for code in (*words[1:], stdin) for one in guess_commands(code)):
            yield guess
            if program_named(guess.words[0]).wraps:
                # Tcl runs a program with a word of its own: `exec rm x`.
                yield from (SimpleCommand(guess.words[at:]) for at in range(1, len(guess.words)))
    elif program.code == "editor":
        for code in (*(word for word in words[1:] if re.search(r"[\s!]", word)), stdin):
            yield from guess_command_suffixes(code)
    elif name in ("make", "gmake"):
        yield from guess_command_suffixes(stdin)


def _run_by_wrapper(
    words: tuple[str, ...], shell: ShellPath, parse: ParseCode, depth: int
) -> Iterator[SimpleCommand]:
    """Every suffix of a wrapper's words, as any of them may be the command.

    One level is enough, as the suffixes of a suffix are suffixes themselves; and of each kind of interpreter the
    first is, as it is taken to read every word after it.
    """
    interpreters: set[str] = set()
    for index in range(1, len(words)):
        suffix = without_assignments(words[index:])
        if not suffix:
            continue
        if suffix != words[index:]:
            yield SimpleCommand(words[index:], shell=shell)
        inner = SimpleCommand(suffix, shell=shell)
        yield from _spellings(inner)
        program = program_named(basename(suffix[0]))
        if program.wraps:
            shell = _inner_shell(inner)
        elif program.code not in interpreters:
            yield from _run_in_turn(inner, parse, depth)
        if program.code in ("shell", "language"):
            interpreters.add(program.code)


def wrapped_commands(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...] | None:
    """The commands a wrapper, or `find`, would run; empty for other programs, None where that is not certain."""
    program = program_named(basename(words[0]))
    if program.wraps_until:
        starts = [index + 1 for index, word in enumerate(words) if word in program.wraps_until]
        ends = [next((at for at in range(start, len(words)) if words[at] in (";", "+")), None) for start in starts]
        return tuple(words[start:end] for start, end in zip(starts, ends, strict=True))
    syntax = program.syntax
    if syntax is None:
        return ()
    if syntax != "unknown" and syntax.queries and _only_looks_up(syntax, words):
        return ()
    at = None if syntax == "unknown" else _after_options(syntax, words)
    if at is None:
        return None
    return (words[at:],) if words[at:] else ()


def _only_looks_up(syntax: WrapperSyntax, words: tuple[str, ...]) -> bool:
    """Whether its first option makes it say what the command is: `command -v git`."""
    first = "".join(words[1:2])
    letters = set(first[1:]) if first.startswith("-") else set()
    return bool(letters.intersection(syntax.queries)) and letters <= {*syntax.queries, *syntax.flags}


def _after_options(syntax: WrapperSyntax, words: tuple[str, ...]) -> int | None:
    """Where the command of a wrapper begins; None where an option is not known."""
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        for index, letter in enumerate(word[1:], start=1):
            if letter in syntax.valued:
                # What follows the letter is its value, or else the next word is.
                at += index == len(word) - 1
                break
            if letter not in syntax.flags:
                return None
    return at + syntax.operands


def computed_program_reason(command: SimpleCommand) -> str:
    """Why nobody can tell which program a command runs before it runs; empty where its text tells.

    Says too much rather than too little: it decides only where rules forbid commands.
    """
    own = without_assignments(command.words)
    command, assigned = _from_word(command, len(command.words) - len(own)), command.words[: -len(own) or None]
    if own and program_named(basename(own[0])).code == "index" and not only_reads(own):
        assigned = (*assigned, *own[1:])
    if variable := next(filter(steers_programs, map(_variable, assigned)), ""):
        return f"{variable} may make another program run"
    if not command.words:
        return ""
    if 0 in command.computed:
        return f"the program {command.words[0]} is computed"
    name = basename(command.words[0])
    program = program_named(name)
    reads_code = program.code in ("shell", "stdin") or (
        program.code == "language" and all(word.startswith("-") for word in command.words[1:])
    )
    takes_code = program.code in ("shell", "stdin", "words") and name != "env"
    opens_input = program.code in ("shell", "stdin") and any(map(_INPUT.fullmatch, command.words[1:]))
    if (reads_code and command.is_piped) or (takes_code and command.computed) or opens_input:
        return f"{name} runs code that is computed"
    if name in _CHANGES_NAMES and len(command.words) > 1:
        return f"{name} may give a program another name"
    return _computed_by_wrapper(command, name, program)


def _variable(assignment: str) -> str:
    """The name of the variable that an assignment, or an argument of `export` or `read`, is about."""
    return re.split(r"[+=\[]", assignment, maxsplit=1)[0]


_INPUT = re.compile(r"/dev/(?:stdin|fd/\d+)|/proc/(?:self|thread-self|\d+)/fd/\d+")
_CHANGES_NAMES = frozenset(("enable", "hash"))
"""Built-ins after which another program may run under a known name."""


def _computed_by_wrapper(command: SimpleCommand, name: str, program: Program) -> str:
    """The same for the command that a wrapper runs."""
    reason = f"{name} runs a program that is computed"
    if program.wraps_until:
        return reason if any("{}" in inner[0] for inner in wrapped_commands(command.words) or () if inner) else ""
    if not (program.wraps or program.wraps_after.intersection(command.words)):
        return ""
    inner = wrapped_commands(command.words)
    if not inner:
        # Where its command begins, if it has one, cannot be told.
        is_unknown = inner is None or program.syntax in (None, "unknown")
        takes_words = name in ("xargs", "parallel") and inner is None
        return reason if takes_words or (is_unknown and command.computed) else ""
    start = len(command.words) - len(inner[0])
    runs = _from_word(command, start)
    if name == "xargs":
        # It appends words that it reads, or puts them in the place of a sign.
        options = command.words[:start]
        signs = {"{}", *(word[2:] or options[at + 1] for at, word in enumerate(options) if word.startswith("-I"))}
        replaced = {at for at, word in enumerate(runs.words) if any(sign in word for sign in signs)}
        runs = replace(
            runs, words=(*runs.words, "…"), computed=runs.computed | replaced | {len(runs.words)}, is_piped=False
        )
    return computed_program_reason(runs)


_SEPARATORS = re.compile(r"[;&|\n\r(){}<>`]+|\$\(")
_QUOTES = re.compile(r"[\"'\\]")
_BEFORE_A_COMMAND = re.compile(
    r"!|if|then|elif|else|do|while|until|time|coproc|[A-Za-z_]\w*(?:\[.*\])?\+?=.*", re.DOTALL
)
_MAX_PREFIX_WORDS = 50
"""How many words before a command are each taken for its beginning; of more, these and the command itself."""


def guess_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Everything between two signs that could separate commands, with and without its quotes."""
    found: dict[tuple[str, ...], None] = {}
    for part in _SEPARATORS.split(text):
        for form in (_QUOTES.sub("", part), *re.split(r"[\"']", part)):
            words = tuple(form.split())
            first = next((at for at, word in enumerate(words) if not _BEFORE_A_COMMAND.fullmatch(word)), len(words))
            for at in (*range(min(first, _MAX_PREFIX_WORDS)), first):
                if at < len(words):
                    found[words[at:]] = None
    return tuple(SimpleCommand(words) for words in found)


def guess_command_suffixes(text: str) -> tuple[SimpleCommand, ...]:
    """Every suffix of every guess, for languages that put a sign or a word of their own before a command."""
    suffixes = (
        (word.lstrip("!:.+-*@"), *command.words[at + 1 :])
        for command in guess_commands(text)
        for at, word in enumerate(command.words)
    )
    return tuple(map(SimpleCommand, dict.fromkeys(suffixes)))
