"""Commands that wipe a disk, the system or a whole home folder: refused in every mode."""

import re
from posixpath import normpath

from policy.rules import globs_overlap
from policy.shell.folders import placed
from policy.shell.program_table import program_named
from policy.shell.programs import Program
from policy.shell.shell_text import ShellText, SimpleCommand

__all__ = ["destructive_reason"]

_DISK = re.compile(r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d|disk/|mapper/|dm-\d|md\d)")
_TOP_FOLDERS = (
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "sbin", "sys", "usr", "var",
    "Library", "System", "Users",
)  # fmt: skip
_SYSTEM = re.compile(rf"/|/\*|/(?:{'|'.join(_TOP_FOLDERS)}|usr/(?:bin|lib|lib64|sbin))(?:/\.?\*)?")
_PROCESS_ROOT = re.compile(r"/proc/(?:self|thread-self|\d+)/root(?=/|$)")
"""Another name of the root folder."""
_HOME = re.compile(r"(?:~[\w-]*|\$HOME|\$\{HOME(?:[:%#^,/-][^}]*)?\}|/(?:home|Users)/[^/]+|/root)(?:/\.?\*)?")
_FIND_FILTERS = frozenset(
    ("-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-user", "-size", "-mtime", "-mmin")
)
_FORK_BOMB = re.compile(r"([^\s(){};|&]{1,32})\s*(?:\(\)\s*)?\{\s*\1\s*[|&]\s*\1\s*&\s*\}\s*;\s*\1")


def destructive_reason(command: str, text: ShellText) -> str:
    """Why the command must never run; empty when it destroys nothing of the kind."""
    if _FORK_BOMB.search(command):
        return "it is a fork bomb"
    if any(_DISK.match(_normalized(target)) for target in text.written):
        return "it writes over a disk"
    return next(filter(None, map(_reason_for, text.runs)), "")


def _reason_for(command: SimpleCommand) -> str:
    name, *arguments = command.words
    # PowerShell does not tell upper from lower case.
    program = max(program_named(name), program_named(name.casefold()), key=lambda row: row != Program())
    if program.formats_with is None:
        return "it formats a disk"
    if program.handles == "removes" and "--no-preserve-root" in arguments:
        return "it lifts the protection of the root folder"
    formats = any(re.fullmatch(program.formats_with, word) for word in arguments if program.formats_with)
    if formats and any(_is_disk(command, word) for word in arguments):
        return "it formats a disk"
    if any(_is_disk(command, word) for word in _overwritten(program, arguments)):
        return "it writes over a disk"
    operands = [word for word in arguments if not word.startswith("-")]
    places = [placed(command.folder, word) for word in operands]
    places += [placed(_with_defaults(command.folder), _with_defaults(word)) for word in operands]
    wiped = next((place for place in places if _wipes(program, arguments, _normalized(place))), None)
    return f"it would go through all of {wiped}" if wiped else ""


_DEFAULT = re.compile(r"\$\{\w+:?[-=+?]([^{}]*)\}")
_MAX_NESTED = 5


def _with_defaults(word: str) -> str:
    """A word with the values that variables have if they are not set: `${x:-/}`."""
    for _ in range(_MAX_NESTED):
        word = _DEFAULT.sub(r"\1", word)
    return word


def _is_disk(command: SimpleCommand, word: str) -> bool:
    return _DISK.match(_normalized(placed(command.folder, word))) is not None


def _overwritten(program: Program, arguments: list[str]) -> list[str]:
    match program.overwrites:
        case "of=":
            return [word.removeprefix("of=") for word in arguments if word.startswith("of=")]
        case "last":
            return arguments[-1:]
        case "all":
            return arguments
        case "":
            return []


def _wipes(program: Program, arguments: list[str], place: str) -> bool:
    """Whether the program goes through all of the system, or of a home folder, and removes or changes it."""
    if program.wraps_until:
        removes = "-delete" in arguments or "rm" in arguments
        return removes and not _FIND_FILTERS.intersection(arguments) and _is_system(place)
    match program.handles:
        case "removes":
            return _is_recursive(arguments) and (_is_system(place) or _HOME.fullmatch(place) is not None)
        case "changes":
            return _is_recursive(arguments) and _is_system(place)
        case _:
            return False


def _is_recursive(arguments: list[str]) -> bool:
    long = (word for word in arguments if word.startswith("--"))
    short = (word for word in arguments if word.startswith("-") and not word.startswith("--"))
    return any(len(word) > 4 and "--recursive".startswith(word) for word in long) or any(
        "r" in word or "R" in word for word in short
    )


def _is_system(place: str) -> bool:
    """Whether it is a folder of the system, or a pattern right below the root that matches one among others."""
    if _SYSTEM.fullmatch(place):
        return True
    is_top = place.startswith("/") and "/" not in place[1:]
    is_pattern = is_top and re.search(r"[*?[]", place) is not None
    return is_pattern and any(globs_overlap(place, f"/{name}") for name in _TOP_FOLDERS)


def _normalized(word: str) -> str:
    path = normpath(word) if word else ""
    path = path[1:] if path.startswith("//") else path
    return normpath(_PROCESS_ROOT.sub("/", path, count=1).replace("//", "/")) if path.startswith("/proc/") else path
