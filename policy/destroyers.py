"""Commands no one means: those that wipe a disk, the system or a whole home. Refused in every mode."""

import re
from posixpath import normpath

from policy.shell import ShellText, SimpleCommand
from policy.standing import placed

__all__ = ["destroys"]

_DISK = re.compile(r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d|mapper/|dm-\d|md\d)")
_SYSTEM = re.compile(
    r"/|/\*|/(?:bin|boot|dev|etc|home|lib|lib64|opt|proc|root|sbin|sys|usr|var|System|Library|Users)(?:/\*)?"
)
_HOME = re.compile(r"(?:~|\$\{?HOME\}?|/(?:home|Users)/[^/]+|/root)(?:/\*)?")
_NARROWING = frozenset(
    ("-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-user", "-size", "-mtime", "-mmin")
)
_FORK_BOMB = re.compile(r"([^\s(){};|&]{1,32})\s*\(\)\s*\{\s*\1\s*\|\s*\1\s*&\s*\}\s*;\s*\1")
_SWEEPERS = frozenset(("rm", "chmod", "chown", "chgrp", "find"))
_POWERSHELL = dict.fromkeys(("remove-item", "ri", "del", "erase", "rd"), "rm")
"""What other shells call it."""
_WIPES = frozenset(("clear-disk", "format-volume", "initialize-disk"))
_FORMATTERS = ("mkfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "sfdisk")


def destroys(command: str, text: ShellText) -> str:
    """What the command would destroy, in words; empty when nothing of the kind was found."""
    if _FORK_BOMB.search(command):
        return "it is a fork bomb"
    if any(_DISK.match(target) for target in text.written):
        return "it writes over a disk"
    return next(filter(None, map(_destroys_one, text.runs)), "")


def _destroys_one(command: SimpleCommand) -> str:
    named, *arguments = command.words
    program = _POWERSHELL.get(named.casefold(), named)
    if named.casefold() in _WIPES:
        return "it formats a disk"
    if program == "rm" and "--no-preserve-root" in arguments:
        return "it lifts the protection of the root folder"
    if program.startswith(_FORMATTERS) and any(_DISK.match(word) for word in arguments):
        return "it formats a disk"
    if any(_DISK.match(placed(command.folder, word)) for word in _overwritten(program, arguments)):
        return "it writes over a disk"
    if program not in _SWEEPERS:
        return ""
    places = (placed(command.folder, word) for word in arguments if not word.startswith("-"))
    whole = next((place for place in places if _goes_through_all(program, arguments, place)), None)
    return f"it would go through all of {whole}" if whole else ""


def _overwritten(program: str, arguments: list[str]) -> list[str]:
    match program:
        case "dd":
            return [word.removeprefix("of=") for word in arguments if word.startswith("of=")]
        case "cp" | "mv":
            return arguments[-1:]
        case "shred" | "tee":
            return arguments
        case _:
            return []


def _goes_through_all(program: str, arguments: list[str], word: str) -> bool:
    place = _plain(word)
    is_system = _SYSTEM.fullmatch(place) is not None
    match program:
        case "rm":
            return any(map(_is_recursive, arguments)) and (is_system or _HOME.fullmatch(place) is not None)
        case "chmod" | "chown" | "chgrp":
            return any(map(_is_recursive, arguments)) and is_system
        case "find":
            removes = "-delete" in arguments or "rm" in arguments
            return removes and is_system and not _NARROWING.intersection(arguments)
        case _:
            return False


def _is_recursive(word: str) -> bool:
    if word.startswith("--"):
        return len(word) > 4 and "--recursive".startswith(word)
    return word.startswith("-") and ("r" in word or "R" in word)


def _plain(word: str) -> str:
    path = normpath(word) if word else ""
    return path[1:] if path.startswith("//") else path
