"""What the arguments of a program make of it: which of them write, run or delete, and which are files.

`policy.shell.programs` holds the table; here one command is read by its row.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from posixpath import basename, dirname
from typing import NamedTuple

from policy.shell.programs import RSYNC_REMOVES, Program, program_named, subcommand_named

__all__ = [
    "GIT_VALUED",
    "Reading",
    "dangerous_options",
    "expand_abbreviations",
    "file_operands",
    "is_dry_run",
    "offered_prefix",
    "only_reads",
    "read_command",
    "shows_names",
    "takes_code_from_input",
    "uncovered_arguments",
]


class Reading(NamedTuple):
    """A command read by its row of the table."""

    name: str
    """The program's bare name, and its subcommand if that has a row of its own: `git push`."""
    row: Program
    arguments: tuple[str, ...]
    """What follows the program, or the subcommand."""
    options: tuple[str, ...]
    """Of these, options with the values that are known to belong to them."""
    operands: tuple[str, ...]


def read_command(words: Sequence[str]) -> Reading:
    """Read the words of a command from its program on."""
    name = basename(words[0])
    row, arguments = program_named(name), tuple(words[1:])
    at = _subcommand_position(name, arguments)
    if at is not None and (inner := subcommand_named(name, arguments[at])) is not None:
        name, row, arguments = f"{name} {arguments[at]}", inner, arguments[at + 1 :]
    options: list[str] = []
    operands: list[str] = []
    for one in _split(row, arguments):
        (options if one.is_option else operands).extend(one.words)
    return Reading(name, row, arguments, tuple(options), tuple(operands))


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


class _Option(NamedTuple):
    """An option, or an operand where both names are empty, with the words that it takes."""

    letters: str
    """The short options in the word, the last of which may have a value."""
    long: str
    words: tuple[str, ...]

    @property
    def is_option(self) -> bool:
        """Whether it is one, and no operand."""
        return bool(self.letters or self.long)


def _split(row: Program, arguments: Sequence[str]) -> Iterator[_Option]:
    """The arguments one by one, options together with a value that follows them."""
    at, only_operands = 0, False
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if only_operands or not word.startswith("-") or word == "-":
            yield _Option("", "", (word,))
        elif word == "--":
            only_operands = True
        elif word.startswith("--"):
            name = word[2:].partition("=")[0]
            takes_next = "=" not in word and name in row.valued_long
            yield _Option("", name, tuple(arguments[at - 1 : at + takes_next]))
            at += takes_next
        else:
            letters, has_value_after = _letters(row, word[1:])
            yield _Option(letters, "", tuple(arguments[at - 1 : at + has_value_after]))
            at += has_value_after


def _letters(row: Program, bundle: str) -> tuple[str, bool]:
    """The options in a bundle up to the first that takes a value, and whether that is the next word."""
    for index, letter in enumerate(bundle):
        if letter in row.valued and letter not in row.short_options:
            return bundle[: index + 1], index == len(bundle) - 1
    return bundle, False


def dangerous_options(program: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments that make this program write a file, or run another, where it would not do so by nature."""
    name = basename(program)
    row = program_named(name)
    is_dry = name == "rsync" and is_dry_run(arguments)
    found: list[str] = []
    for option in _split(row, arguments):
        word = option.words[0]
        if not option.is_option:
            continue
        bare = word.lstrip("-").partition("=")[0]
        listed = option.long and any(known.startswith(option.long) for known in row.long_options)
        if option.long and is_dry and any(known.startswith(option.long) for known in RSYNC_REMOVES):
            listed = False
        listed = listed or any(letter in option.letters for letter in row.short_options) or bare in row.word_options
        if listed and not (row.effect == "network" and _writes_to_output(word, row, arguments)):
            found.append(word)
    if row.checked_as:
        found += _CHECKS[row.checked_as](row, arguments)
    return tuple(dict.fromkeys(found))


def is_dry_run(arguments: Iterable[str]) -> bool:
    """Whether an option says that nothing is to be done."""
    return any(re.fullmatch(r"--dry-run|-[A-Za-z]*n[A-Za-z]*", word) for word in arguments)


_OUTPUT = re.compile(r"(?:-[A-Za-z]*[oO]|--output|--output-document|--output-file)=?")
_NOWHERE = ("-", "/dev/null", "/dev/stdout")


def _writes_to_output(word: str, row: Program, arguments: Sequence[str]) -> bool:
    """Whether the file that an option names is the standard output or nothing: `curl -o /dev/null`, `wget -qO-`."""
    if any(word.endswith(name) and _OUTPUT.fullmatch(word.removesuffix(name)) for name in _NOWHERE):
        return True
    at = list(arguments).index(word)
    is_apart = _OUTPUT.fullmatch(word) is not None and not word.endswith("=")
    remote = "O" in word and not word.startswith("--") and "output" in row.long_options
    return is_apart and not remote and "".join(arguments[at + 1 : at + 2]) in _NOWHERE


def expand_abbreviations(program: str, arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments with abbreviated options of this kind in full, as GNU programs and git take them."""
    row = program_named(program)
    expanded: list[str] = []
    for word in arguments:
        option, sign, value = word.removeprefix("--").partition("=")
        is_long = word.startswith("--") and option
        full = next((known for known in row.long_options if known.startswith(option)), option)
        expanded.append(f"--{full}{sign}{value}" if is_long else word)
    return tuple(expanded)


_SYSTEM_FOLDERS = frozenset(("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"))


def only_reads(words: Sequence[str]) -> bool:
    """Whether the command is known to write no file, run nothing and contact nobody."""
    if not words or dirname(words[0]) not in _SYSTEM_FOLDERS:
        return False
    reading = read_command(words)
    if reading.name == "command" and any(re.fullmatch(r"-p?[vV]", word) for word in words[1:2]):
        return True
    if tuple(words[1:]) == ("--version",) and reading.row != Program():
        return True
    changes = _GIT_CHANGES.get(reading.name.removeprefix("git ")) if reading.name.startswith("git ") else None
    return (
        reading.row.only_reads
        and not dangerous_options(words[0], words[1:])
        and not any(word.startswith("--files0") for word in words)
        and not (changes and changes(reading.arguments))
    )


_LISTS = re.compile(r"-[lnarv]+\d*|--(?:list|contains|no-contains|merged|no-merged|points-at)(?:=.*)?")
_QUERIES = frozenset(("get", "list", "-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch"))
_LIST_CHANGES = re.compile(
    r"-[A-Za-z]*[dDmMcCfutsFA].*|--(?:delete|move|copy|force|track|set-up|unset|edit|create|recurse|annotate|sign"
    r"|local-user|file|message|cleanup|trailer).*"
)


def _changes_names(arguments: Sequence[str]) -> bool:
    """Whether `git branch` or `git tag` does more than list."""
    has_operand = any(not word.startswith("-") for word in arguments)
    return any(map(_LIST_CHANGES.fullmatch, arguments)) or (
        has_operand and not any(map(_LISTS.fullmatch, arguments))
    )


def _first_is_not(*queries: str, may_be_missing: bool = False) -> Callable[[Sequence[str]], bool]:
    def changes(arguments: Sequence[str]) -> bool:
        first = next((word for word in arguments if not word.startswith("-")), "")
        return first not in queries and not (may_be_missing and not first)

    return changes


_GIT_CHANGES: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "bisect": _first_is_not("log", "view"),
    "branch": _changes_names,
    "config": lambda arguments: not (arguments and arguments[0] in _QUERIES),
    "notes": _first_is_not("list", "show"),
    "reflog": _first_is_not("show", may_be_missing=True),
    "remote": _first_is_not("get-url", may_be_missing=True),
    "stash": _first_is_not("list", "show"),
    "submodule": _first_is_not("status", "summary"),
    "tag": _changes_names,
    "worktree": _first_is_not("list"),
}
"""Commands of git that list or change: whether these arguments change anything."""


def shows_names(words: Sequence[str]) -> bool:
    """Whether it shows no more of its files than their names and properties."""
    reading = read_command(words)
    return only_reads(words) and reading.row.reads != "contents"


_SHORT_PATTERN = re.compile(r"-[^-]*[ef].*")
_LONG_PATTERN = re.compile(r"--(?:e\w*|f|fi\w*|files|r|re\w*|fr\w*|from-file)(?:=.*)?")


def file_operands(words: Sequence[str]) -> tuple[str, ...]:
    """The words of a command that may name files, its program and a pattern that comes first left out."""
    reading = read_command(words)
    if reading.row.only_reads and reading.row.reads == "nothing":
        return ()
    operands = reading.operands
    given = any(_SHORT_PATTERN.fullmatch(word) or _LONG_PATTERN.fullmatch(word) for word in reading.options)
    if reading.row.pattern_first and not given:
        operands = operands[1:]
    return (*_without_messages(reading), *operands)


_MESSAGE = re.compile(r"-[A-Za-z]*m|--message")


def _without_messages(reading: Reading) -> Iterator[str]:
    """The options, but for the text that git takes for a message."""
    is_text = False
    for word in reading.options:
        if not is_text and not (reading.name.startswith("git") and _MESSAGE.match(word)):
            yield word
        is_text = reading.name.startswith("git") and _MESSAGE.fullmatch(word) is not None


def takes_code_from_input(words: Sequence[str]) -> bool:
    """Whether what the program does is in its input: an interpreter without a script, an editor of commands."""
    row = program_named(basename(words[0]))
    if row.only_reads or row.effect == "privilege":
        return False
    is_language = row.code == "language" and all(word.startswith("-") for word in words[1:])
    return row.code in ("shell", "stdin") or is_language or (row.code == "editor" and row.runs_any)


_RISKY_NAMES = frozenset(
    (
        "browser", "cmd", "command", "conf", "config", "configuration", "dir", "editor", "eval", "exec",
        "execute", "file", "filter", "hook", "hooks", "import", "interpreter", "launcher", "linker", "loader",
        "logfile", "options", "out", "outfile", "output", "pager", "plugin", "plugins", "preload", "program",
        "proxy", "rcfile", "require", "rsh", "run", "runner", "script", "sh", "shell", "toolexec", "url",
        "wrapper",
    )
)  # fmt: skip
"""Last parts of the names of options that take a file, a command or a URL."""
_NAME_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_ELSEWHERE = re.compile(r"[/~]|\.\./|.*://")


def uncovered_arguments(words: Sequence[str]) -> tuple[str, ...]:
    """The arguments that a star in an allow rule does not stand for, because they make the program do more.

    Of a program without options in the table, those that take a file, a command or an address by their name.
    """
    reading = read_command(words)
    found = dangerous_options(words[0], words[1:])
    row = program_named(basename(words[0]))
    is_listed = row.only_reads or row.long_options or row.word_options or row.short_options or row.checked_as
    # What such a program runs is given some of its arguments.
    passes_on = row.effect == "script" and not row.word_options and not row.checked_as
    if (is_listed and not passes_on) or reading.row.only_reads:
        return found
    return tuple(dict.fromkeys((*found, *filter(_is_risky_option, words[1:]))))


def _is_risky_option(word: str) -> bool:
    name, sign, value = word.lstrip("-").partition("=")
    if not word.startswith("-") or not name:
        return False
    if word == "-o" or (re.match(r"-o[\w./]*[./]", word) is not None):
        return True
    is_long = word.startswith("--") or len(name) > 2
    parts = _NAME_PARTS.findall(name)
    if not is_long or name.startswith("no-") or name.endswith("dry-run") or not parts:
        return False
    is_named = parts[-1].lower() in _RISKY_NAMES
    return is_named or (word.startswith("--") and bool(sign) and _ELSEWHERE.match(value) is not None)


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
    offered = _PREFIXES.get(words[0], frozenset()) if words else frozenset()
    if " ".join(words[1:2]) in offered:
        return tuple(words[:2])
    names_script = len(words) > 2 and f"{words[1]} ?" in offered and _PLAIN_WORD.fullmatch(words[2])
    return tuple(words[:3]) if names_script else ()


_FIND = re.compile(r"-(?:exec|execdir|ok|okdir|delete|fprint0?|fprintf|fls|files0-from)")
_GIT_GLOBAL = re.compile(
    r"-[cCp].*|--(?:git-dir|work-tree|namespace|exec-path|config-env|paginate|shallow-file|attr-source|super-prefix|bare).*"
)
_GIT_RUNNING_LETTERS: Mapping[str, str] = {"clone": "uc", "difftool": "x", "filter-branch": "x", "rebase": "x"}
"""Commands of git with short options that run a program."""
_SED_SAFE = re.compile(
    r"(?:(?:\d+|\$|/[^/\\;\n]*/)(?:,(?:\d+|\$|\+\d+|/[^/\\;\n]*/))?!?)?[pdqQ=]"
    r"|s(?P<d>[/|,#:@])(?:(?!(?P=d)|\n|\\).|\\.)*(?P=d)(?:(?!(?P=d)|\n|\\).|\\.)*(?P=d)[gpiI0-9]*"
)


def _git_words(_: Program, arguments: Sequence[str]) -> list[str]:
    at = next((index for index, word in enumerate(arguments) if not word.startswith("-")), len(arguments))
    found = [word for word in arguments[:at] if _GIT_GLOBAL.fullmatch(word)]
    # The value of an option of git itself looks like the subcommand; such options have been found already.
    subcommand = arguments[at] if at < len(arguments) else ""
    following = arguments[at + 1 :]
    if subcommand == "grep":
        found += [word for word in following if re.match(r"-[A-Za-z]*O", word)]
    letters = _GIT_RUNNING_LETTERS.get(subcommand, "")
    found += [word for word in following if re.match(r"-[A-Za-z]", word) and any(one in word for one in letters)]
    if subcommand in ("filter-branch", "difftool", "mergetool", "hook"):
        found.append(subcommand)
    if subcommand == "config" and not (following and following[0] in _QUERIES):
        found.append(subcommand)
    if subcommand in ("bisect", "submodule"):
        found += [word for word in following if word in ("run", "foreach")]
    if subcommand == "cat-file":
        found += [word for word in following if word.startswith("--filt")]
    if subcommand in ("archive", "format-patch"):
        found += [word for word in following if word.startswith("-o")]
    return found


def _sed_scripts(_: Program, arguments: Sequence[str]) -> list[str]:
    """Of what sed may take for its script, which is the first operand or the value of every -e, the unsafe ones."""
    scripts: list[str] = []
    for index, word in enumerate(arguments):
        if word.startswith("-") and not word.startswith("--") and "e" in word:
            after = word.partition("e")[2]
            scripts += [after] if after else list(arguments[index + 1 : index + 2])
    scripts = scripts or [word for word in arguments if not word.startswith("-")][:1]
    return [text for text in scripts if not all(_SED_SAFE.fullmatch(part.strip()) for part in text.split(";"))]


_AWK_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\w+|\s+|.', re.DOTALL)
_AWK_REGEX = re.compile(r"/((?:[^/\\\n]|\\.)*)/")
_BEFORE_A_PATTERN = frozenset(("", *"~(,!&|;{}<>=*%?:[^", "print", "printf", "return", "exit", "in", "else", "do"))
"""After these a slash begins a pattern."""
_BEFORE_A_DIVISION = re.compile(r"(?!length$)\w+|\]")
_AWK_RISKY = re.compile(
    r"system|getline|@|#|\"|close|fflush|ENVIRON|ARG[VC]|\bprint.*>|\|(?!\|)(?<!\|\|)", re.DOTALL
)


def _awk_words(_: Program, arguments: Sequence[str]) -> list[str]:
    """Words that write, run or read more, if they are a program of awk: `>` is a comparison outside of print."""
    return [word for word in arguments if _AWK_RISKY.search(_without_literals(word))]


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


def _make_words(_: Program, arguments: Sequence[str]) -> list[str]:
    """Variables that makefiles may run; a number or a switch is none."""
    pairs = ((word, word.partition("=")) for word in arguments if re.match(r"[\w.]+[:+?!]*=", word))
    return [word for word, (name, _, value) in pairs if "SHELL" in name or not _FLAG_VALUE.fullmatch(value)]


def _tar_words(_: Program, arguments: Sequence[str]) -> list[str]:
    """A first word of letters without a dash: `tar xIf program archive`."""
    first = "".join(arguments[:1])
    return [first] if re.fullmatch(r"[A-Za-z]+", first) and re.search("[IFgT]", first) else []


_PYTEST = re.compile(
    r"--(?:basetemp|confcutdir|config-file|cov-config|junit-?xml|log-file|override-ini|pdbcls|rootdir)(?:=.*)?"
)


def _pytest_words(_: Program, arguments: Sequence[str]) -> list[str]:
    found = [word for word in arguments if _PYTEST.fullmatch(word)]
    for at, word in enumerate(arguments):
        plugin = (
            "".join(arguments[at + 1 : at + 2]) if word == "-p" else word[2:] if word.startswith("-p") else "no:"
        )
        found += [] if plugin.startswith("no:") else [word]
    return found


def _operands(row: Program, arguments: Sequence[str]) -> list[str]:
    return [option.words[0] for option in _split(row, arguments) if not option.is_option]


_CHECKS: Mapping[str, Callable[[Program, Sequence[str]], list[str]]] = {
    "awk": _awk_words,
    "curl": lambda _, arguments: [word for word in arguments if re.search(r"(?:^|=|^-[dFwHb])[@<]|^file:", word)],
    "date": lambda row, arguments: [word for word in _operands(row, arguments) if not word.startswith("+")],
    "find": lambda _, arguments: [word for word in arguments if _FIND.fullmatch(word)],
    "git": _git_words,
    "jq": lambda _, arguments: [word for word in arguments if re.search(r"\b(?:import|include)\b", word)],
    "make": _make_words,
    "operands": _operands,
    "printf": lambda _, arguments: [word for word in arguments[:1] if word.startswith("-v")],
    "pytest": _pytest_words,
    "sed": _sed_scripts,
    "set": lambda _, arguments: [
        word for word in arguments if not re.fullmatch(r"[-+][eux]+o?|[-+]o|pipefail|errexit|nounset", word)
    ],
    "tar": _tar_words,
    # A second operand is the file that uniq writes.
    "uniq": lambda row, arguments: _operands(row, arguments)[1:],
    "zip": lambda _, arguments: [word for word in arguments if re.match(r"-[A-Za-z]*T[A-Za-z]*T|-TT", word)],
}
"""The rules beyond options: which arguments are dangerous, by `Program.checked_as`."""
