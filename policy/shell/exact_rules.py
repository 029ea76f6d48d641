"""What a rule for exactly the words of a command leaves open: nothing, what files say, or all it will ever run.

"Always" stores such rules. The words of `python3 x.py` say which file runs, so a person can agree to them knowing
that the file may change; those of `python3` alone say nothing, because its code is in its input, which no rule
sees. A command is only taken to say what it runs if it does so in every reading of its options.
"""

import re
from collections.abc import Iterator, Sequence
from posixpath import basename

from policy.shell.arguments import only_reads, read_command
from policy.shell.commands import guess_commands, without_assignments, wrapped_commands
from policy.shell.program_table import program_named
from policy.shell.programs import Program, WrapperSyntax

__all__ = ["exact_objection", "what_may_change"]

_MAX_DEPTH = 8
_FROM_INPUT = "{} takes its code from its input, or may do so: a rule for these words would allow any code."
_ARGUMENTS_FROM_INPUT = "{} takes arguments from its input: a rule for these words would allow any of them."
_FINDS = "What {} finds may change: a rule for these words would allow it to do this to any other file."
_COMPUTED = "What {} runs is computed when it runs: a rule for these words would allow more than was shown."
_ELSEWHERE = "{} hands its command to another user, machine or container, where no rule is saved for it."
_APPENDS_INPUT = frozenset(("parallel", "xargs"))
_READS_INPUT = frozenset(("R", "at", "batch", "ghci", "irb", "jshell"))
"""Programs that take code from their input whatever their arguments are."""
_INTERACTIVE = frozenset(("-", "asyncio", "code", "pdb", "repl"))
"""Arguments with which an interpreter does so."""
_INPUT_FILE = re.compile(r"/dev/(?:stdin|fd/.*|tty)|/proc/.*/fd/.*")
_EXPANSION = re.compile(r"[$`*?\[~<>]")
"""What may let the same shell code run something else another time."""
_SHELL_CODE = re.compile(r"-[a-zA-Z]*c")
_SHELL_FLAG = re.compile(r"-[abefhklmnptuvxBCEHPT]+|--(?:login|noprofile|norc|posix|verbose)")
_OTHER_CODE = re.compile(r"-[A-Za-z]*[ce]|--(?:eval|print|command)(?:=.*)?")
_OTHER_FLAG = re.compile(
    r"-[uBsSObqvwxpnl]+|-[pn]i|--[\w-]+=.*|--(?:test|watch|enable-source-maps|expose-gc|no-[\w-]+|experimental-[\w-]+)"
)
"""Options of interpreters without a value in the next word, so that the first operand after them is a script."""


def exact_objection(words: Sequence[str], depth: int = 0) -> str:
    """Why no rule for exactly these words should be stored, as a sentence; empty if one may be.

    Whether they are all that the shell sees, so that nothing in them is computed, is not asked here.
    """
    own = without_assignments(tuple(words))
    if not own or only_reads(own):
        return ""
    name = basename(own[0])
    row = program_named(name)
    code = list(_shell_code(row, own))
    reasons = (
        (row.runs_any and _hands_on(row), _ELSEWHERE),
        (row.runs_any and row.walks == "always", _FINDS),
        (name in _APPENDS_INPUT, _ARGUMENTS_FROM_INPUT),
        (_may_take_code_from_input(name, row, own[1:]), _FROM_INPUT),
        (depth >= _MAX_DEPTH or any(map(_EXPANSION.search, code)), _COMPUTED),
    )
    if reason := next((reason for holds, reason in reasons if holds), ""):
        return reason.format(name)
    inner = [*(one.words for text in code for one in guess_commands(text)), *_wrapped(row, own)]
    return next(filter(None, (exact_objection(one, depth + 1) for one in inner)), "")


def _hands_on(row: Program) -> bool:
    reaches_host = row.effect == "network" and bool(row.code or row.wraps_after)
    return row.effect in ("privilege", "outside") or reaches_host


def _may_take_code_from_input(name: str, row: Program, arguments: tuple[str, ...]) -> bool:
    """Whether the program may take its code from its input, in any reading of its options."""
    if name in _READS_INPUT or (row.code == "editor" and row.runs_any and not row.only_reads):
        return True
    if row.code not in ("shell", "stdin", "language"):
        return False
    if any(word in _INTERACTIVE or _INPUT_FILE.fullmatch(word) for word in arguments):
        return True
    # The first operand of awk is its code.
    return not row.only_reads and not _names_code(arguments, is_shell=row.code != "language")


def _names_code(arguments: tuple[str, ...], *, is_shell: bool) -> bool:
    """Whether the arguments certainly hold code, or name a script or a module."""
    flag, gives_code = (_SHELL_FLAG, _SHELL_CODE) if is_shell else (_OTHER_FLAG, _OTHER_CODE)
    for at, word in enumerate(arguments):
        if gives_code.fullmatch(word) or (not is_shell and word == "-m"):
            return "=" in word or (at + 1 < len(arguments) and not arguments[at + 1].startswith("-"))
        if not flag.fullmatch(word):
            return not word.startswith(("-", "+"))
    return "--test" in arguments


def _shell_code(row: Program, own: tuple[str, ...]) -> Iterator[str]:
    """Words that a shell reads as code."""
    is_split = row.code == "words" and row.runs_any and not _wrapped_exactly(row, own)
    if is_split or (row.code == "shell" and any(map(_SHELL_CODE.fullmatch, own[1:]))):
        yield from own[1:]


def _wrapped_exactly(row: Program, own: tuple[str, ...]) -> tuple[tuple[str, ...], ...] | None:
    return wrapped_commands(own) if isinstance(row.syntax, WrapperSyntax) else None


def _wrapped(row: Program, own: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """What a wrapper runs; every end of its words where it is not certain where the command begins."""
    inner = _wrapped_exactly(row, own)
    if inner is not None:
        yield from inner
    elif row.wraps or row.wraps_after.intersection(own):
        yield from (own[at:] for at in range(1, len(own)))


def what_may_change(words: Sequence[str]) -> str:
    """What the same words may do another time, as a sentence; empty where they say all that is known."""
    own = without_assignments(tuple(words))
    if not own or only_reads(own):
        return ""
    row = read_command(own).row
    if inner := _wrapped_exactly(row, own):
        return what_may_change(inner[0])
    name = basename(own[0])
    if source := _source(row, own):
        return f"What {'it' if source == own[0] else name} then does is in {source}, which may change."
    runs_code = row.code in ("shell", "stdin", "language", "words") or (row.wraps and own[1:])
    if runs_code or row.effect == "script":
        return f"What {name} then does also depends on files, which may change."
    return ""


def _source(row: Program, own: tuple[str, ...]) -> str:
    """The file, or the module, that certainly says what the program does; empty if there is none."""
    if "/" in own[0] and row == Program():
        return own[0]
    if row.code not in ("shell", "stdin", "language") or row.only_reads:
        return ""
    match own[1:]:
        case ("-m", module, *_):
            return f"the module {module} and the files that it loads"
        case (script, *_) if re.fullmatch(r"[^-].*[./].*|[./].*", script):
            return script
    return ""
