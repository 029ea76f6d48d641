"""Which paths, hosts and programs of deny and ask rules a command may reach, in any spelling."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile
from pathlib import PurePath
from posixpath import basename, join, normpath
from typing import NamedTuple
from urllib.parse import unquote

from policy.facts import CallFacts, PolicySettings
from policy.matching import (
    absolute_path,
    covers_any_name,
    covers_any_path,
    is_about_access,
    matches_tool,
    split_pattern,
)
from policy.rules import Rule, globs_overlap, matches_host, spellings
from policy.shell.arguments import (
    Reading,
    file_operands,
    is_recursive,
    only_reads,
    read_command,
    shows_contents,
    shows_names,
)
from policy.shell.commands import without_assignments, wrapped_commands
from policy.shell.folders import placed
from policy.shell.program_table import program_named
from policy.shell.programs import Program
from policy.shell.shell_text import ShellText, SimpleCommand

__all__ = ["names_host", "names_literally", "names_path", "program_as_argument", "whole_folders"]

_WILDCARD = re.compile(r"[*?]")
_SHELL_PATTERN = re.compile(r"[*?\[]")
_SHOWS_DOTS = re.compile("dotglob|GLOBIGNORE")
"""Shell settings that make a star match names that begin with a dot."""
_MAX_DEPTH = 8
_MAX_BUNDLE = 5
"""Letters of short options before a value in the same word."""


class _Folder(NamedTuple):
    """A folder that a command works on, with everything below it."""

    path: str
    is_deep: bool
    """Certainly with all that is below; otherwise only if it is a folder, and not a file."""


def names_path(rule: Rule, facts: CallFacts, settings: PolicySettings, text: ShellText) -> bool:
    """Whether a command names a path that a rule about files covers: by a word, a pattern, a redirection.

    A rule without a pattern closes every path. A word is then no proof of a path, so a rule about reading holds for
    every command that has arguments, and a rule about writing for redirections.
    """
    closes_reading, closes_writing = is_about_access(rule, "read"), is_about_access(rule, "write")
    if rule.pattern is None:
        has_arguments = any(len(command.words) > 1 for command in text.commands) or bool(text.read)
        return (closes_writing and bool(facts.redirects)) or (closes_reading and has_arguments)
    if not (closes_reading or closes_writing):
        return False
    if covers_any_path(rule, facts.redirects, facts, settings) or (closes_writing and text.unknown_target):
        return True
    if not closes_reading and not text.unclear_reason and all(map(_only_reads, text.commands)):
        return False
    if covers_any_name(rule, _named_places(facts, settings, text), facts, settings):
        return True
    folders = whole_folders(text, facts, settings, reads=closes_reading, writes=closes_writing)
    return (
        _is_in_any(rule, folders, facts, settings)
        or _may_match(rule, facts, settings, text)
        or _uses_unknown_name(text, reads=closes_reading, writes=closes_writing)
    )


def names_literally(rule: Rule, facts: CallFacts, settings: PolicySettings, text: ShellText) -> bool:
    """Whether such a path is in the text itself; otherwise the command only may name one."""
    return covers_any_path(rule, facts.redirects, facts, settings) or (
        rule.pattern is not None and covers_any_name(rule, _named_places(facts, settings, text), facts, settings)
    )


def _named_places(facts: CallFacts, settings: PolicySettings, text: ShellText) -> tuple[str, ...]:
    words = {word for command in (*text.runs, *text.commands) for word in command.words}
    words.update(text.read, text.named)
    words.update(made for command in text.runs for made in _made_by_copying(command))
    spellings = {form for word in words for form in (word, word.rpartition("=")[2], _file_of_address(word)) if form}
    return (*map(str, facts.mentions), *(absolute_path(form, facts, settings) for form in spellings))


def _file_of_address(word: str) -> str:
    """The path in an address of a file, `file://host/path`, as programs decode it; empty for other words."""
    found = re.match(r"(?:--?[\w-]+=)?file:(?://[^/]*)?(/.*)", word, re.IGNORECASE)
    return f"/{unquote(found[1]).lstrip('/')}" if found else ""


def _made_by_copying(command: SimpleCommand) -> Iterator[str]:
    """The names that a command gives to what it copies, moves or links into a folder, wherever that is named."""
    reading = read_command(command.words)
    if not (reading.row.handles == "copies" or reading.row.overwrites == "last"):
        return
    operands = reading.operands
    targets = {*(operands[-1:] if len(operands) > 1 else (".",))}
    for part in reading.parts:
        # An option that is not known may be an abbreviation of the one for the folder.
        values = (part.value,) if part.is_harmless else (part.value, part.words[0].partition("=")[2])
        targets.update(value for value in values if value and part.names)
    for target in targets:
        yield from (placed(command.folder, join(target, basename(normpath(one)))) for one in operands)


_VALUE = re.compile(r"\$\{[^}]*\}|\$\([^()]*\)|\$[A-Za-z_]\w*|\$[\d@*#?$!_-]|`[^`]*`")
_KNOWN_VALUE = re.compile(r"^(?:\$HOME\b|\$\{HOME\}|\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`)")


def _holds_value(word: str) -> bool:
    """Whether a word, other than a sentence, holds the value of a variable or what a command prints."""
    unresolved = _KNOWN_VALUE.sub("", word)
    return _VALUE.search(unresolved) is not None and " " not in _VALUE.sub("", unresolved)


def _uses_unknown_name(text: ShellText, *, reads: bool, writes: bool) -> bool:
    """Whether a command reads or writes a path that a variable names, or one in an unknown folder."""
    if (reads and any(map(_holds_value, text.read))) or (writes and any(map(_holds_value, text.written))):
        return True
    for command in (*text.runs, *text.commands):
        words, computed = _innermost(command)
        if not words or not ((reads and _may_read(words)) or (writes and _may_write(words))):
            continue
        if any(_holds_value(words[at]) for at in computed if at and not _is_message(words, at)):
            return True
        if None in command.folders and any(not word.startswith(("/", "~")) for word in file_operands(words)):
            return True
    return False


def _innermost(command: SimpleCommand) -> tuple[tuple[str, ...], frozenset[int]]:
    """The words of a command without assignments and wrappers, and which of them are computed."""
    words = without_assignments(command.words)
    for _ in range(_MAX_DEPTH):
        inner = wrapped_commands(words) if words and not read_command(words).row.wraps_until else None
        if not inner:
            break
        words = inner[0]
    start = len(command.words) - len(words)
    return words, frozenset(at - start for at in command.computed if at >= start)


def _is_message(words: tuple[str, ...], at: int) -> bool:
    """Whether a word is a text that git keeps, and no name."""
    return basename(words[0]) == "git" and words[at] not in file_operands(words)


def _may_read(words: tuple[str, ...]) -> bool:
    """Whether a command may show or copy what is in files; what scripts open by themselves is not seen."""
    reading = read_command(words)
    row = reading.row
    if row.only_reads:
        return shows_contents(reading) or (bool(row.wraps_until) and not only_reads(words))
    copies = row.handles in ("copies", "packs", "unpacks") or row.overwrites in ("last", "of=")
    is_known = row.effect in ("script", "deletes") or (row.effect == "writes" and not copies) or row.code == "index"
    return row.reads == "contents" and not is_known


def _may_write(words: tuple[str, ...]) -> bool:
    """Whether a command may write files that it is given; what scripts write is not seen."""
    row = read_command(words).row
    return not only_reads(words) and row.effect != "script" and row.code != "index" and row.reads != "nothing"


def _is_in_any(rule: Rule, folders: Iterable[_Folder], facts: CallFacts, settings: PolicySettings) -> bool:
    """Whether what a rule names may be in one of the folders."""
    base, relative = split_pattern(rule.pattern or "", facts.workspace, settings.home)
    plain = tuple(takewhile(lambda part: not _WILDCARD.search(part), PurePath(relative).parts))
    closed, known = str(base / relative), base.joinpath(*plain)
    return any(
        (bool(plain) and known.is_relative_to(folder))
        or (is_deep and any(globs_overlap(closed, one) for one in (folder, f"{folder.rstrip('/')}/**")))
        for place, is_deep in folders
        for folder in spellings(place)
    )


def _may_match(rule: Rule, facts: CallFacts, settings: PolicySettings, text: ShellText) -> bool:
    """Whether a pattern of a command may match what a rule names."""
    base, relative = split_pattern(rule.pattern or "", facts.workspace, settings.home)
    found = (*(absolute_path(word, facts, settings) for word in text.patterns), *map(str, facts.patterns))
    names = {form for name in found for form in spellings(name)}
    hides_dots = not _SHOWS_DOTS.search(facts.command or "")
    closed = str(base / relative)
    if "nocaseglob" in (facts.command or ""):
        names, closed = {name.casefold() for name in names}, closed.casefold()
    if any(globs_overlap(name, closed, hides_dots=hides_dots) for name in names):
        return True
    # What only reads files does not go into a folder that a pattern matches.
    within = closed.removesuffix("/**")
    return within != closed and any(
        globs_overlap(
            absolute_path(placed(command.folder, command.words[at]), facts, settings), within, hides_dots=True
        )
        for command in text.runs
        for at in command.patterns
        if not _only_reads(command) or _searches_folders(command)
    )


_EXTRACTS = frozenset(("-x", "--extract", "--get"))
_IN_COMMIT = re.compile(r"[^:]*:[^*?\[$`]+")
"""A path in a commit, written out: git shows that file alone."""


def whole_folders(
    text: ShellText, facts: CallFacts, settings: PolicySettings, *, reads: bool = False, writes: bool = False
) -> frozenset[_Folder]:
    """What a text removes, changes, copies or packs with all that is in it.

    With `reads` also where it reads files that it finds in folders, and with `writes` where it writes such files.
    """
    return frozenset(
        _Folder(absolute_path(placed(command.folder, word), facts, settings), is_deep)
        for command in text.runs
        for word, is_deep in _handled_folders(command, str(facts.workspace), reads=reads, writes=writes)
    )


def _handled_folders(
    command: SimpleCommand, workspace: str, *, reads: bool, writes: bool
) -> Iterator[tuple[str, bool]]:
    """The words for such folders; "" is the current one."""
    reading = read_command(command.words)
    row, words = reading.row, command.words[1:]
    operands = [word for word in words if not word.startswith("-")]
    goes_deep = is_recursive(reading)
    runs_on_files = bool(row.wraps_until) and not only_reads(command.words) and (reads or writes)
    if runs_on_files or (reads and _reads_below(reading)):
        yield from ((folder, True) for folder in _searched_folders(reading, workspace))
    if row.handles == "copies":
        is_deep = goes_deep or reading.name == "rsync"
        yield from ((word, is_deep) for word in operands[:-1])
        if writes and is_deep:
            yield from ((word, True) for word in operands[-1:])
    elif row.handles in ("removes", "changes", "packs"):
        is_deep = goes_deep or row.checked_as == "tar"
        yield from ((word, is_deep) for word in operands)
    extracts = row.checked_as == "tar" and (not reading.is_plain or not _EXTRACTS.isdisjoint(reading.names))
    if writes and (row.handles == "unpacks" or extracts):
        yield "", True
    if writes and row.handles == "tree" and not only_reads(command.words):
        yield workspace, True
    if (reads or writes) and _is_unknown(row):
        yield from ((part, False) for word in words for part in re.split("[=:,]", word) if part)
    if (reads or writes) and _takes_names_from_input(command, reading):
        yield "/", True


def _is_unknown(row: Program) -> bool:
    """Whether the table does not say what a program does with the folders that it is given."""
    is_known = row.effect or row.code or row.only_reads or row.wraps or row.wraps_after or row.handles
    return not is_known and row.reads == "contents"


def _searches_folders(command: SimpleCommand) -> bool:
    """Whether it goes into the folders that it is given."""
    reading = read_command(command.words)
    return reading.row.walks == "always" or (reading.row.walks == "recursive" and is_recursive(reading))


def _reads_below(reading: Reading) -> bool:
    """Whether it reads what is in files below a folder, and does not only show their names."""
    if reading.name == "git" and not reading.operands:
        return False
    if (
        reading.name == "git show"
        and reading.is_plain
        and all(map(_IN_COMMIT.fullmatch, reading.operands or ("",)))
    ):
        return False
    goes_deep = reading.row.walks == "always" or (reading.row.walks == "recursive" and is_recursive(reading))
    return goes_deep and shows_contents(reading)


def _searched_folders(reading: Reading, workspace: str) -> Iterable[str]:
    """The folders that it goes through."""
    arguments = reading.arguments
    if reading.name.startswith("git "):
        return arguments[arguments.index("--") + 1 :] if "--" in arguments else (workspace,)
    if reading.row.wraps_until:
        return tuple(takewhile(lambda word: word[:1] not in "-(!", arguments)) or ("",)
    # The first operand may be what it searches for; without another it searches where it is.
    return (*reading.operands, *([""] if len(reading.operands) <= 1 else []))


def _takes_names_from_input(command: SimpleCommand, reading: Reading) -> bool:
    """Whether it works on files that are named in its input or in another file, and the text does not show them."""
    if any(re.match(r"--files0?-from", word) for word in command.words):
        return True
    if reading.name not in ("xargs", "parallel", "cpio", "pax") or command.stdin:
        return False
    inner = wrapped_commands(command.words)
    return not (inner and all(shows_names(words) for words in inner))


def _only_reads(command: SimpleCommand) -> bool:
    """Whether the command is known to write no file that its arguments name."""
    return only_reads(without_assignments(command.words))


_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[\w-]+(?:\.[\w-]+)*))\.?(?::(?P<port>\d+))?")
_IPV6 = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*")
_USUAL_PORTS = ("80", "443")


def names_host(rule: Rule, text: ShellText) -> bool:
    """Whether a command names a host that a rule about hosts covers, in a URL or alone."""
    if not matches_tool(rule, "web_fetch"):
        return False
    words = {word for command in (*text.runs, *text.commands) for word in command.words}
    inputs = {command.stdin for command in text.runs if not _only_reads(command)}
    words.update(text.read, text.written, text.named, *map(str.split, inputs))
    if rule.pattern is None:
        return any("://" in word or word.startswith("/dev/tcp/") for word in words)
    if any(map(_contacts_unknown_host, (*text.runs, *text.commands))):
        return True
    # An address may follow in a bundle of short options.
    words.update([word[at:] for word in words if re.match(r"-[^-]", word) for at in range(2, _MAX_BUNDLE + 2)])
    # Programs decode a host before they look it up.
    words.update([unicodedata.normalize("NFKC", unquote(word)).replace("\u3002", ".") for word in words])
    if any(matches_host(rule.pattern, f"[{word}]", is_strict=True) for word in words if _IPV6.fullmatch(word)):
        return True
    for host in (match for word in words for match in _HOST.finditer(word)):
        name = f"[{host['address']}]" if host["address"] else host["name"]
        has_port = host["port"] and host["port"] not in _USUAL_PORTS
        if matches_host(rule.pattern, f"{name}:{host['port']}" if has_port else name, is_strict=True):
            return True
    return False


_ADDRESS_PATTERN = re.compile(r"\{|\[(?![0-9A-Fa-f:.]*\])")
"""What curl takes for several addresses in one: `{a,b}` and `[a-z]`, but for an address of version 6."""


def _contacts_unknown_host(command: SimpleCommand) -> bool:
    """Whether a command contacts what it is given by a variable, or by a pattern of its own."""
    words, computed = _innermost(command)
    reading = read_command(words) if words else None
    if reading is None or not (reading.row.effect == "network" or _is_unknown(reading.row)):
        return False
    addresses = (*reading.operands, *(part.value for part in reading.parts if "--url" in part.names))
    has_pattern = reading.row.checked_as == "curl" and any(map(_ADDRESS_PATTERN.search, addresses))
    return has_pattern or any(_holds_value(words[at]) for at in computed if at)


_BEFORE_A_PROGRAM = re.compile(r"[=:(,](?=\S)")
"""Signs after which an option may be followed by a command: `--run=…`, `EXEC:…`."""


def program_as_argument(rule: Rule, text: ShellText) -> str:
    """The word by which a command names the program that a rule is about, and may run it; empty if none does.

    Programs that only read are left out, and those whose arguments are subcommands, such as `git rm`, but for
    options that are not known.
    """
    program, _, following = (rule.pattern or "").strip().partition(" ")
    program, following = basename(program.removesuffix("*")), following.partition(" ")[0].rstrip("*")
    if not program or _WILDCARD.search(program):
        return ""
    found = (_word_for_program(command, program, following) for command in text.commands)
    return next(filter(None, found), "")


def _word_for_program(command: SimpleCommand, program: str, following: str) -> str:
    if program not in command.text and not command.computed:
        return ""
    words = without_assignments(command.words)
    start = len(command.words) - len(words)
    assigned = (word for word in command.words[:start] if _is_name_of(program, word.partition("=")[2]))
    row = program_named(basename(words[0])) if words else None
    if row is None or (only_reads(words) and not row.names_programs):
        return next(assigned, "")
    named = (
        word
        for word, after in _may_name_program(words, row)
        if _names_program(program, word) and any(one.startswith(following) for one in (*after, ""))
    )
    copies = row.handles == "copies" or row.overwrites == "last" or _is_unknown(row)
    computed = (command.words[at] for at in sorted(command.computed) if at > start and copies)
    renamed = (word for word in computed if _may_be_program(program, word))
    return next(chain(assigned, named, renamed), "")


def _may_name_program(words: tuple[str, ...], row: Program) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The words of a command that may be a program, each with those behind it."""
    reading = read_command(words)
    if not row.wraps_after:
        yield from ((word, words[at:]) for at, word in enumerate(words[1:], start=2))
        return
    for part in (*reading.own, *reading.parts):
        if not part.is_harmless:
            at = words.index(part.words[0]) + 1
            yield from ((word, words[at:]) for word in (*part.words, *words[at : at + 1]))


def _names_program(program: str, word: str) -> bool:
    """Whether a word is a program's name or path, or has one behind a sign or behind short options."""
    bundled = [word[at:] for at in range(2, _MAX_BUNDLE + 2)] if re.match(r"-[^-]", word) else []
    parts = (part.split() for part in (word, *bundled, *_BEFORE_A_PROGRAM.split(word)))
    return any(basename(part[0]) == program for part in parts if part)


def _is_name_of(program: str, path: str) -> bool:
    name = basename(path)
    return name == program or (_SHELL_PATTERN.search(name) is not None and globs_overlap(name, program))


def _may_be_program(program: str, word: str) -> bool:
    """Whether a pattern, or a word that holds a value, may become a path of a program, to be run by another name.

    A pattern of nothing but wildcards counts only where it does not stand for files of the workspace.
    """
    if program in re.split(r"[^\w.+-]+", word):
        return True
    name = _VALUE.sub("*", basename(word.rstrip("/")))
    leads_away = word.startswith(("/", "~", "$", "`", ".."))
    return (leads_away or bool(re.sub(r"[*?]|\[.*\]", "", name))) and globs_overlap(name, program)
