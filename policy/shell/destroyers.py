"""Commands no one means: those that wipe a disk, the system or a whole home. Refused in every mode."""

import re
from posixpath import normpath

from policy.rules import may_meet
from policy.shell.effects import ShellText, SimpleCommand, placed

__all__ = ["destroys"]

_DISK = re.compile(r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d|disk/|mapper/|dm-\d|md\d)")
_TOPMOST = (
    "bin", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "sbin", "sys", "usr", "var",
    "Library", "System", "Users",
)  # fmt: skip
_SYSTEM = re.compile(rf"/|/\*|/(?:{'|'.join(_TOPMOST)}|usr/(?:bin|lib|lib64|sbin))(?:/\.?\*)?")
_ROOT = re.compile(r"/proc/(?:self|thread-self|\d+)/root(?=/|$)")
"""Another name of the root folder."""
_HOME = re.compile(r"(?:~[\w-]*|\$HOME|\$\{HOME(?:[:%#^,/-][^}]*)?\}|/(?:home|Users)/[^/]+|/root)(?:/\.?\*)?")
_NARROWING = frozenset(
    ("-name", "-iname", "-path", "-ipath", "-regex", "-iregex", "-user", "-size", "-mtime", "-mmin")
)
_FORK_BOMB = re.compile(r"([^\s(){};|&]{1,32})\s*(?:\(\)\s*)?\{\s*\1\s*[|&]\s*\1\s*&\s*\}\s*;\s*\1")
_SWEEPERS = frozenset(("rm", "chmod", "chown", "chgrp", "find"))
_POWERSHELL = dict.fromkeys(("remove-item", "ri", "del", "erase", "rd"), "rm")
"""What other shells call it."""
_WIPES = frozenset(("clear-disk", "format-volume", "initialize-disk"))
_FORMATTERS = ("mkfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "sfdisk", "pvcreate")
_WIPING = {
    "badblocks": re.compile(r"-\w*[wn]\w*"),
    "cryptsetup": re.compile("luksFormat|erase|luksErase"),
    "hdparm": re.compile("--(?:security-erase|trim-sector|write-sector|make-bad-sector).*"),
    "nvme": re.compile("format|sanitize|write.*"),
    "parted": re.compile("mklabel|mktable|rm|mkpart"),
}
"""Programs that do much to a disk, and the words by which they destroy what is on it."""


def destroys(command: str, text: ShellText) -> str:
    """What the command would destroy, in words; empty when nothing of the kind was found."""
    if _FORK_BOMB.search(command):
        return "it is a fork bomb"
    if any(_DISK.match(_plain(target)) for target in text.written):
        return "it writes over a disk"
    return next(filter(None, map(_destroys_one, text.runs)), "")


def _destroys_one(command: SimpleCommand) -> str:
    named, *arguments = command.words
    program = _POWERSHELL.get(named.casefold(), named)
    if named.casefold() in _WIPES:
        return "it formats a disk"
    if program == "rm" and "--no-preserve-root" in arguments:
        return "it lifts the protection of the root folder"
    if _formats(program, arguments) and any(_is_disk(command, word) for word in arguments):
        return "it formats a disk"
    if any(_is_disk(command, word) for word in _overwritten(program, arguments)):
        return "it writes over a disk"
    if program not in _SWEEPERS:
        return ""
    places = (placed(command.folder, word) for word in arguments if not word.startswith("-"))
    whole = next((place for place in places if _goes_through_all(program, arguments, place)), None)
    return f"it would go through all of {whole}" if whole else ""


def _is_disk(command: SimpleCommand, word: str) -> bool:
    return _DISK.match(_plain(placed(command.folder, word))) is not None


def _formats(program: str, arguments: list[str]) -> bool:
    wiping = _WIPING.get(program)
    return program.startswith(_FORMATTERS) or (wiping is not None and any(map(wiping.fullmatch, arguments)))


def _overwritten(program: str, arguments: list[str]) -> list[str]:
    match program:
        case "dd":
            return [word.removeprefix("of=") for word in arguments if word.startswith("of=")]
        case "cp" | "mv" | "install":
            return arguments[-1:]
        case "shred" | "tee" | "truncate":
            return arguments
        case _:
            return []


def _goes_through_all(program: str, arguments: list[str], word: str) -> bool:
    place = _plain(word)
    is_system = _SYSTEM.fullmatch(place) is not None or _is_pattern_of_system(place)
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


def _is_pattern_of_system(place: str) -> bool:
    """Whether a pattern right below the root stands for folders of the system, among others."""
    is_topmost = place.startswith("/") and "/" not in place[1:]
    is_pattern = is_topmost and re.search(r"[*?[]", place) is not None
    return is_pattern and any(may_meet(place, f"/{name}") for name in _TOPMOST)


def _is_recursive(word: str) -> bool:
    if word.startswith("--"):
        return len(word) > 4 and "--recursive".startswith(word)
    return word.startswith("-") and ("r" in word or "R" in word)


def _plain(word: str) -> str:
    path = normpath(word) if word else ""
    path = path[1:] if path.startswith("//") else path
    return normpath(_ROOT.sub("/", path, count=1).replace("//", "/")) if path.startswith("/proc/") else path
