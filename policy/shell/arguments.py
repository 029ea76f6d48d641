"""What the arguments of a program make it do: which of them write, run or delete, and which are files.

`policy.shell.program_table` finds the row of a program; here one command is read by it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import basename, dirname
from typing import NamedTuple

from policy.shell.program_table import USUAL, program_named, subcommand_named
from policy.shell.programs import Program, WrapperSyntax
from policy.shell.project_table import RSYNC_REMOVES

__all__ = [
    "GIT_VALUED",
    "Option",
    "Reading",
    "dangerous_options",
    "expand_abbreviations",
    "file_operands",
    "harmful_options",
    "is_dry_run",
    "is_recursive",
    "offered_prefix",
    "only_reads",
    "read_command",
    "shows_contents",
    "shows_names",
    "takes_code_from_input",
    "uncovered_arguments",
]

_MAX_READINGS = 2048
"""Number of parsed commands in the cache: the same few are read many times for one decision, and for the next
one."""
_MAX_WORDS = 64
"""Of such a command."""


class Option(NamedTuple):
    """An option, or a bundle of short ones, with the words that it takes; an operand has no names."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    value: str = ""
    """That of the last name."""
    is_harmless: bool = True
    """Every name is one that the row lists as harmless, in a spelling that every parser reads alike."""


class Reading(NamedTuple):
    """A command read by its row of the table."""

    name: str
    """The program's bare name, and its subcommand if that has a row of its own: `git push`."""
    row: Program
    program: Program
    """The row of the program itself, also where its subcommand has one."""
    arguments: tuple[str, ...]
    """What follows the program, or the subcommand."""
    parts: tuple[Option, ...]
    """The arguments, options with the values that are known to belong to them."""
    own: tuple[Option, ...] = ()
    """Options before the subcommand."""
    passed_on: tuple[str, ...] = ()
    """The end of the arguments that is a command, or a script, with arguments of its own."""

    @property
    def options(self) -> tuple[str, ...]:
        """The words of the options with their values."""
        return tuple(word for part in self.parts if part.names for word in part.words)

    @property
    def operands(self) -> tuple[str, ...]:
        """The other words."""
        return tuple(part.words[0] for part in self.parts if not part.names)

    @property
    def names(self) -> frozenset[str]:
        """The names of all its options."""
        return frozenset(name for part in self.parts for name in part.names)

    @property
    def is_plain(self) -> bool:
        """Whether all options are known to be harmless."""
        return all(part.is_harmless for part in (*self.own, *self.parts))


def read_command(words: Sequence[str]) -> Reading:
    """Read the words of a command from its program on."""
    return _read(tuple(words)) if len(words) <= _MAX_WORDS else _read.__wrapped__(tuple(words))


@lru_cache(maxsize=_MAX_READINGS)
def _read(words: tuple[str, ...]) -> Reading:
    name = basename(words[0])
    program, arguments = program_named(name), words[1:]
    at = _subcommand_position(name, arguments)
    row = subcommand_named(name, arguments[at]) if at is not None else None
    if at is None or row is None:
        parts, remaining = _split((program,), arguments)
        return Reading(name, program, program, arguments, parts, passed_on=remaining)
    # Git has options of its own; other programs take theirs on either side of the subcommand.
    own, _ = _split((program,), arguments[:at])
    following = arguments[at + 1 :]
    parts, remaining = _split((row,) if name == "git" else (row, program), following)
    return Reading(f"{name} {arguments[at]}", row, program, following, parts, own, remaining)


GIT_VALUED = frozenset(
    (
        "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--shallow-file",
        "--attr-source", "--super-prefix",
    )
)  # fmt: skip
"""Options of git itself that take the next word, which is not the subcommand then."""


def _subcommand_position(name: str, arguments: Sequence[str]) -> int | None:
    """Where the first operand is; options of git itself may have a value."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if name == "git" and arguments[at] in GIT_VALUED else 1
    return at if at < len(arguments) else None


def _split(rows: tuple[Program, ...], arguments: tuple[str, ...]) -> tuple[tuple[Option, ...], tuple[str, ...]]:
    """The arguments one by one, and the end of them that is a command of its own."""
    row = rows[0]
    if any(one.passes_on for one in rows) or not any(one.is_listed for one in rows):
        rows = (*rows, USUAL)
    parts: list[Option] = []
    at, ends, only_operands, split_at = 0, row.options_first, not row.has_options, len(arguments)
    while at < len(arguments):
        word = arguments[at]
        if only_operands or not word.startswith("-") or word == "-":
            is_bundle = at == 0 and row.bundle_first and word.isalpha()
            part = _bundle(rows, f"-{word}", arguments[1:2]) if is_bundle else Option((), (word,))
            if ends and not only_operands:
                only_operands, split_at = True, at
            ends = ends or word in row.wraps_after
        elif word == "--":
            # Only what is known to end its options here does.
            part = Option((), ())
            only_operands = row.is_listed and not row.passes_on
            at += 1
        elif word in row.wraps_until:
            end = next((end for end in range(at, len(arguments)) if arguments[end] in (";", "+")), len(arguments))
            part = Option((word,), arguments[at : end + 1], is_harmless=False)
        else:
            part = _option(rows, word, arguments[at + 1 : at + 2])
        parts += [part] if part.words else []
        at += len(part.words)
    return tuple(parts), arguments[split_at:]


_OUTPUTS = frozenset(("-o", "-O", "--output", "--output-document", "--output-file"))
_NOWHERE = ("-", "/dev/null", "/dev/stdout")
_SWITCH = re.compile(r"\d+|yes|no|true|false|on|off", re.IGNORECASE)
_NUMBERED = re.compile(r"-[A-Za-np-z]\d+")


def _option(rows: tuple[Program, ...], word: str, following: tuple[str, ...]) -> Option:
    """A word that is an option, with its value."""
    name, sign, value = word.partition("=")
    for row in rows:
        takes_value = row.harmless_options.get(name)
        if takes_value is not None:
            after = following if takes_value and not sign else ()
            return Option((name,), (word, *after), value or "".join(after))
    if not word.startswith("--"):
        return _bundle(rows, word, following)
    if rows[0].effect == "network" and name in _OUTPUTS and (value or "".join(following)) in _NOWHERE:
        return Option((name,), (word, *(() if sign else following)))
    is_switch = re.match("--no-[a-z]", name) or (sign and _SWITCH.fullmatch(value))
    return Option((name,), (word,), value, is_harmless=USUAL in rows and bool(is_switch))


def _bundle(rows: tuple[Program, ...], word: str, following: tuple[str, ...]) -> Option:
    """A bundle of short options: as many letters as there are before one that has a value."""
    letters = word[1:]
    if letters.isdigit() and any("#" in row.harmless_letters for row in rows):
        return Option((word,), (word,))
    if USUAL in rows and _NUMBERED.fullmatch(word):
        return Option((word[:2],), (word,), word[2:])
    is_harmless = True
    for at, letter in enumerate(letters):
        names = tuple(f"-{one}" for one in letters[: at + 1])
        colons, is_listed = _meaning(rows, letter)
        attached = letters[at + 1 :]
        value = attached or ("".join(following) if colons == ":" else "")
        goes_nowhere = (
            rows[0].effect == "network" and f"-{letter}" in _OUTPUTS and bool(colons) and value in _NOWHERE
        )
        is_harmless = is_harmless and (is_listed or goes_nowhere)
        if colons:
            # Behind several letters a value may be read as more letters.
            is_clear = at == 0 or not attached or goes_nowhere or re.fullmatch(r"[\d,.]+", attached) is not None
            taken = () if attached or colons != ":" else following
            return Option(names, (word, *taken), value, is_harmless=is_harmless and is_clear)
    return Option(tuple(f"-{one}" for one in letters), (word,), is_harmless=is_harmless)


def _meaning(rows: tuple[Program, ...], letter: str) -> tuple[str, bool]:
    """Whether a short option has a value, as colons, and whether it is harmless."""
    for row in rows:
        for letters, is_harmless in ((row.harmful_letters, False), (row.harmless_letters, True)):
            if letter in letters:
                return letters[letter], is_harmless
    return "", False


def harmful_options(words: Sequence[str]) -> tuple[Option, ...]:
    """The options that are known to make this program write a file, or run another."""
    program = program_named(basename(words[0]))
    if not (program.harmful_letters or program.harmful_options or program.wraps_until):
        return ()
    reading = read_command(words)
    is_dry = reading.name == "rsync" and is_dry_run(reading.arguments)
    return tuple(
        part
        for part in (*reading.own, *reading.parts)
        if not part.is_harmless and part.names and _is_harmful(part, reading, is_dry=is_dry)
    )


def _is_harmful(part: Option, reading: Reading, *, is_dry: bool) -> bool:
    rows = (reading.row, reading.program)
    letters = [row.harmful_letters for row in rows if row is reading.row or not reading.name.startswith("git ")]
    letters = [reading.program.harmful_letters] if part in reading.own else letters
    if any(name[1:] in known for name in part.names for known in letters):
        return True
    if part.names[0] in reading.row.wraps_until:
        return True
    [name, *_] = part.names
    bare, is_long = part.words[0].partition("=")[0].lstrip("-"), name.startswith("--")
    known = {option for row in rows for option in row.harmful_options}
    if is_dry:
        known.difference_update(f"--{removes}" for removes in RSYNC_REMOVES)
    # An abbreviation may mean any of them.
    return any(option.lstrip("-") == bare or (is_long and option.startswith(name)) for option in known)


def dangerous_options(program: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments that make this program write a file, or run another, where it would not do so by nature."""
    words = (program, *arguments)
    found = [option.words[0] for option in harmful_options(words)]
    return tuple(dict.fromkeys((*found, *_beyond_options(read_command(words)))))


def _beyond_options(reading: Reading) -> Iterable[str]:
    check = _CHECKS.get(reading.row.checked_as)
    return check(reading) if check else ()


def is_dry_run(arguments: Iterable[str]) -> bool:
    """Whether an option says that nothing is to be done."""
    return any(re.fullmatch(r"--dry-run|-[A-Za-z]*n[A-Za-z]*", word) for word in arguments)


def expand_abbreviations(program: str, arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments with abbreviated options of this kind in full, as GNU programs and git take them."""
    row = program_named(program)
    expanded: list[str] = []
    for word in arguments:
        option, sign, value = word.partition("=")
        is_long = word.startswith("--") and len(option) > 2 and option not in row.harmless_options
        full = next((known for known in row.harmful_options if known.startswith(option)), option)
        expanded.append(f"{full}{sign}{value}" if is_long else word)
    return tuple(expanded)


def uncovered_arguments(words: Sequence[str]) -> tuple[str, ...]:
    """The arguments that a star in an allow rule does not stand for, because they may make the program do more.

    These are all options that are not known to be harmless, and what else the row says.
    """
    return _uncovered(tuple(words)) if len(words) <= _MAX_WORDS else _uncovered.__wrapped__(tuple(words))


@lru_cache(maxsize=_MAX_READINGS)
def _uncovered(words: tuple[str, ...]) -> tuple[str, ...]:
    reading = read_command(words)
    row, found = reading.row, []
    is_dry = reading.name == "rsync" and is_dry_run(reading.arguments)
    # The operands of an interpreter are code already.
    if not (row.options_first and row.code in ("shell", "language")):
        found += [
            part.words[0]
            for part in (*reading.own, *reading.parts)
            if not part.is_harmless and not (is_dry and part.names[0][2:] in RSYNC_REMOVES)
        ]
    found += _beyond_options(reading)
    if reading.passed_on and not isinstance(row.syntax, WrapperSyntax):
        found += uncovered_arguments(reading.passed_on)
    return tuple(dict.fromkeys(found))


_SYSTEM_FOLDERS = frozenset(("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"))


def only_reads(words: Sequence[str]) -> bool:
    """Whether the command is a plain, fully understood spelling of one that reads.

    It then writes no file, runs nothing and contacts nobody. Rules that allow, deny and ask, "always" and risk all
    go by this.
    """
    return _only_reads(tuple(words)) if len(words) <= _MAX_WORDS else _only_reads.__wrapped__(tuple(words))


@lru_cache(maxsize=_MAX_READINGS)
def _only_reads(words: tuple[str, ...]) -> bool:
    if not words or dirname(words[0]) not in _SYSTEM_FOLDERS:
        return False
    reading = read_command(words)
    if words[1:] == ("--version",) and reading.row.prints_version:
        return True
    syntax = reading.row.syntax
    if isinstance(syntax, WrapperSyntax) and syntax.queries:
        return re.fullmatch(f"-[{syntax.flags}]*[{syntax.queries}]", "".join(words[1:2])) is not None
    if not reading.row.only_reads or uncovered_arguments(words):
        return False
    changes = _GIT_CHANGES.get(reading.name.removeprefix("git ")) if reading.program.checked_as == "git" else None
    return not (changes and changes(reading))


_LISTED_BY = frozenset(
    ("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at", "-l", "-n", "--all", "-r")
)
_QUERIES = frozenset(("get", "list", "-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch"))
_CHANGING = frozenset(
    (
        "-d", "-D", "-f", "-m", "-M", "-c", "-C", "-t", "-u", "-F", "--delete", "--force", "--create-reflog",
        "--move", "--copy", "--track", "--no-track", "--set-upstream-to", "--unset-upstream", "--annotate",
        "--message", "--file",
    )
)  # fmt: skip


def _changes_names(reading: Reading) -> bool:
    """Whether `git branch` or `git tag` does more than list; `-a` lists branches and makes a tag."""
    lists = _LISTED_BY | ({"-a"} if reading.name == "git branch" else frozenset())
    changes = _CHANGING | ({"-a"} if reading.name == "git tag" else frozenset())
    return bool(reading.names & changes) or (bool(reading.operands) and not reading.names & lists)


def _first_is_not(*queries: str, may_be_missing: bool = False) -> Callable[[Reading], bool]:
    def changes(reading: Reading) -> bool:
        first = next(iter(reading.operands), "")
        return first not in queries and not (may_be_missing and not first)

    return changes


_GIT_CHANGES: Mapping[str, Callable[[Reading], bool]] = {
    "bisect": _first_is_not("log"),
    "branch": _changes_names,
    "config": lambda reading: not (reading.arguments and reading.arguments[0] in _QUERIES),
    "notes": _first_is_not("list", "show"),
    "reflog": _first_is_not("show", may_be_missing=True),
    "remote": _first_is_not("get-url", may_be_missing=True),
    "stash": _first_is_not("list", "show"),
    "tag": _changes_names,
    "worktree": _first_is_not("list"),
}
"""Commands of git that list or change: whether these arguments change anything."""


def shows_contents(reading: Reading) -> bool:
    """Whether it may show or copy what is in files: with these options, as far as they are known."""
    only_by_options = set(reading.row.content_options.split())
    if not only_by_options or not reading.is_plain:
        return reading.row.reads == "contents"
    return not only_by_options.isdisjoint(reading.names)


def shows_names(words: Sequence[str]) -> bool:
    """Whether it shows no more of its files than their names and properties."""
    return only_reads(words) and not shows_contents(read_command(words))


_RECURSIVE = frozenset(("-r", "-R", "--recursive", "--dereference-recursive", "-a", "--archive"))


def is_recursive(reading: Reading) -> bool:
    """Whether it goes into folders; an option that is not known may make it do so."""
    names = reading.names - ({"-a"} if reading.row.handles != "copies" else frozenset())
    return not reading.is_plain or not _RECURSIVE.isdisjoint(names)


_GIVES_PATTERN = frozenset(("-e", "-f", "--regexp", "--file", "--files", "--expression", "--from-file"))


def file_operands(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command that may name files, its program and a pattern that comes first left out."""
    reading = read_command(words)
    if reading.row.only_reads and reading.row.reads == "nothing":
        return ()
    operands = reading.operands
    if reading.row.pattern_first and reading.is_plain and _GIVES_PATTERN.isdisjoint(reading.names):
        operands = operands[1:]
    return (*_without_messages(reading), *operands)


def _without_messages(reading: Reading) -> Iterator[str]:
    """The words of the options, but for the text that git takes for a message."""
    for part in reading.parts:
        is_message = reading.program.checked_as == "git" and part.names[-1:] in (("-m",), ("--message",))
        if part.names and not is_message:
            yield from part.words


def takes_code_from_input(words: Sequence[str]) -> bool:
    """Whether what the program does is in its input: an interpreter without a script, an editor of commands."""
    row = program_named(basename(words[0]))
    if row.only_reads or row.effect == "privilege":
        return False
    is_language = row.code == "language" and all(word.startswith("-") for word in words[1:])
    return row.code in ("shell", "stdin") or is_language or (row.code == "editor" and row.runs_any)


_PREFIXES: Mapping[str, frozenset[str]] = {
    "cargo": frozenset(("bench", "build", "check", "clippy", "doc", "fmt", "test", "tree")),
    "git": frozenset(
        ("add", "blame", "commit", "describe", "diff", "log", "ls-files", "shortlog", "show", "status")
    ),
    "go": frozenset(("build", "fmt", "test", "vet")),
    "ruff": frozenset(("check", "format")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), frozenset(("test", "run ?"))),
}
"""Sub-commands that "always" offers with any arguments; `run ?` stands for `run` and one more word.

Without the options of the table they delete nothing, contact no host that an argument names, and run no code but
that of the project they are started in.
"""
_PLAIN_WORD = re.compile(r"[A-Za-z0-9][\w.:@+-]*")


def offered_prefix(words: Sequence[str]) -> tuple[str, ...]:
    """The program and sub-command of a command that may be allowed with any arguments; empty if there is none."""
    prefixes = _PREFIXES.get(words[0], frozenset()) if words else frozenset()
    if " ".join(words[1:2]) in prefixes:
        return tuple(words[:2])
    names_script = len(words) > 2 and f"{words[1]} ?" in prefixes and _PLAIN_WORD.fullmatch(words[2])
    return tuple(words[:3]) if names_script else ()


_SED_SAFE = re.compile(
    r"(?:(?:\d+|\$|/[^/\\;\n]*/)(?:,(?:\d+|\$|\+\d+|/[^/\\;\n]*/))?!?)?[pdqQ=]"
    r"|s(?P<d>[/|,#:@])(?:(?!(?P=d)|\n|\\).|\\.)*(?P=d)(?:(?!(?P=d)|\n|\\).|\\.)*(?P=d)[gpiI0-9]*"
)


def _git_arguments(reading: Reading) -> list[str]:
    """A command that is not known, or may run a program; words that make a known one run something."""
    if reading.row is reading.program:
        return list(reading.operands[:1])
    subcommand = reading.name.removeprefix("git ")
    found = [subcommand] if reading.row.runs_any else []
    if subcommand == "config" and not (reading.arguments and reading.arguments[0] in _QUERIES):
        found.append(subcommand)
    if subcommand in ("bisect", "submodule"):
        # `view` runs a program to look at history with.
        found += [word for word in reading.operands if word in ("run", "foreach", "view", "visualize")]
    return found + [word for word in reading.operands if "::" in word]


def _sed_arguments(reading: Reading) -> list[str]:
    """Of what sed may take for its script, which is the first operand or the value of every -e, the unsafe ones."""
    given = [part.value for part in reading.parts if part.names[-1:] in (("-e",), ("--expression",))]
    first_operand = next((at for at, part in enumerate(reading.parts) if not part.names), len(reading.parts))
    # Behind an operand some take an option for a file.
    is_mixed = any(part.names for part in reading.parts[first_operand:])
    scripts = [*given, *(reading.operands[:1] if is_mixed or not given else ())]
    return [text for text in scripts if not all(_SED_SAFE.fullmatch(part.strip()) for part in text.split(";"))]


_AWK_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\w+|\s+|.', re.DOTALL)
_AWK_REGEX = re.compile(r"/((?:[^/\\\n]|\\.)*)/")
_BEFORE_A_PATTERN = frozenset(("", *"~(,!&|;{}<>=*%?:[^", "print", "printf", "return", "exit", "in", "else", "do"))
"""After these a slash begins a pattern."""
_BEFORE_A_DIVISION = re.compile(r"(?!length$)\w+|\]")
_AWK_RISKY = re.compile(
    r"system|getline|@|#|\"|close|fflush|ENVIRON|ARG[VC]|\bprint.*>|\|(?!\|)(?<!\|\|)", re.DOTALL
)


def _without_literals(program: str) -> str:
    """A program of awk without its strings and patterns; `@` stands for a slash that may be either sign."""
    program, at, before, kept = program.replace("\\\n", " "), 0, "", ""
    while at < len(program):
        pattern = _AWK_REGEX.match(program, at) if before in _BEFORE_A_PATTERN else None
        # In a bracket a slash is one of its characters for some programs, and for others the end.
        if pattern and "[" not in re.sub(r"\[\^?\]?[^\]]*\]", "", pattern[1]):
            at, before = pattern.end(), "//"
            continue
        found = _AWK_TOKEN.match(program, at)
        token = found[0] if found else program[at]
        is_string = len(token) > 1 and token.startswith('"')
        is_unsure = token.startswith("/") and not _BEFORE_A_DIVISION.fullmatch(before)
        kept += "@" if is_unsure else "" if is_string else token
        if not token.isspace():
            before = token
        elif "\n" in token:
            before = ""
        at += len(token)
    return kept


_FLAG_VALUE = re.compile(r"\d*|[yn]|yes|no|true|false|on|off|debug|release", re.IGNORECASE)
_ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*)(?:[:+?!]*=)(.*)", re.DOTALL)


def _make_arguments(reading: Reading) -> list[str]:
    """Variables that makefiles may run, in any spelling; a number or a switch is none."""
    found: list[str] = []
    for word in reading.operands:
        pair = _ASSIGNED.fullmatch(word)
        is_switch = pair is not None and "SHELL" not in pair[1] and _FLAG_VALUE.fullmatch(pair[2]) is not None
        if re.search(r"[=$:\s]", word) and not is_switch:
            found.append(word)
    return found


def _tar_arguments(reading: Reading) -> list[str]:
    """An archive on another host, which tar lets another program fetch."""
    archives = (part for part in reading.parts if part.names[-1:] in (("-f",), ("--file",)))
    return [part.value for part in archives if ":" in part.value]


def _pytest_arguments(reading: Reading) -> list[str]:
    plugins = (part for part in reading.parts if part.names[-1:] == ("-p",) and not part.value.startswith("no:"))
    return [part.words[0] for part in plugins] + [word for word in reading.operands if word.startswith("@")]


_SENDS_FILE = re.compile(r"@|<|.*=[@<]")
_ENCODES = frozenset(("--data-urlencode",))
"""Options whose value may name a file behind a name of its own: `name@file`."""


def _curl_arguments(reading: Reading) -> list[str]:
    """What sends or reads a file: `@name` behind an option, and an address of a file."""
    sent = [
        part.words[0]
        for part in reading.parts
        if part.names
        and (_SENDS_FILE.match(part.value) or ("@" in part.value and _ENCODES.intersection(part.names)))
    ]
    return sent + [word for word in reading.arguments if re.match(r"(?:--url=)?file:", word, re.IGNORECASE)]


_CHECKS: Mapping[str, Callable[[Reading], list[str]]] = {
    # Words that write, run or read more, if they are a program of awk: `>` is a comparison outside of print.
    "awk": lambda reading: [word for word in reading.arguments if _AWK_RISKY.search(_without_literals(word))],
    "cargo": lambda reading: [word for word in reading.operands if word.startswith("+")],
    "curl": _curl_arguments,
    "date": lambda reading: [word for word in reading.operands if not word.startswith("+")],
    "git": _git_arguments,
    "jq": lambda reading: [word for word in reading.arguments if re.search(r"\b(?:import|include)\b", word)],
    "make": _make_arguments,
    "operands": lambda reading: list(reading.operands),
    "printf": lambda reading: [word for word in reading.arguments[:1] if word.startswith("-v")],
    "pytest": _pytest_arguments,
    "sed": _sed_arguments,
    "set": lambda reading: [
        word for word in reading.arguments if not re.fullmatch(r"[-+][eux]+o?|[-+]o|pipefail|errexit|nounset", word)
    ],
    "tar": _tar_arguments,
    # A second operand is the file that uniq writes.
    "uniq": lambda reading: list(reading.operands[1:]),
}
"""The rules beyond options: which arguments are dangerous, by `Program.checked_as`."""
