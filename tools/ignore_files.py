"""Which entries of a folder are left out of listings: by the repository's `.gitignore` files, or as generated.

`IgnoreRules` decides about one path. `IgnoreFilter` is a quick first look at all names of a folder: no pattern
matches a name that it does not return; the rules have to check one that it returns. It looks only at the last part
of a pattern, so below a folder that it returned, every name has to be checked.
"""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pathspec import GitIgnoreSpec

__all__ = [
    "GENERATED",
    "GENERATED_BESIDE",
    "IGNORE_FILE",
    "NO_FILTER",
    "IgnoreFilter",
    "IgnoreRules",
    "generated_folders",
    "is_hidden",
    "names_generated",
]

_EXTENSION = re.compile(r"\*\.([^.*?\[\\]+)")
_WILDCARD = re.compile(r"[*?\[\\]")


@dataclass(frozen=True)
class IgnoreFilter:
    """What the last parts of patterns look like, in three forms that are quick to compare."""

    names: frozenset[str] = frozenset()
    extensions: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    """Regular expressions of what is neither a whole name nor `*.extension`."""

    def with_lines(self, lines: Iterable[str]) -> "IgnoreFilter":
        """The filter extended by the lines of one more ignore file; the same object if they add nothing."""
        names, extensions, patterns = set(self.names), set(self.extensions), list(self.patterns)
        for line in lines:
            part = _last_part(line)
            if not part:
                continue
            if found := _EXTENSION.fullmatch(part):
                extensions.add(found[1])
            elif _WILDCARD.search(part):
                # From a set or an escape on, anything may follow.
                plain, cut = re.split(r"[\[\\]", part, maxsplit=1)[0], re.search(r"[\[\\]", part)
                regex = "".join({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in plain)
                patterns.append(regex + ".*" if cut else regex)
            else:
                names.add(part)
        joined = IgnoreFilter(frozenset(names), frozenset(extensions), tuple(dict.fromkeys(patterns)))
        return self if joined == self else joined

    def among(self, names: Sequence[str]) -> list[str]:
        """The names that a pattern may match."""
        if self == NO_FILTER:
            return []
        # No name contains a slash, so that all of them can be searched at once for an extension. For the patterns
        # that is not possible: a line end in a name would hide it.
        others, endings = self._others, self._endings
        may_match = (
            not self.names.isdisjoint(names)
            or (endings is not None and endings.search("/".join((*names, ""))) is not None)
            or (others is not None and any(map(others.fullmatch, names)))
        )
        if not may_match:
            return []
        return [
            name
            for name in names
            if name in self.names
            or name.rpartition(".")[2] in self.extensions
            or (others is not None and others.fullmatch(name) is not None)
        ]

    @cached_property
    def _endings(self) -> re.Pattern[str] | None:
        return re.compile(rf"\.(?:{'|'.join(map(re.escape, self.extensions))})/") if self.extensions else None

    @cached_property
    def _others(self) -> re.Pattern[str] | None:
        return re.compile("|".join(self.patterns), re.DOTALL) if self.patterns else None


NO_FILTER = IgnoreFilter()


def _last_part(line: str) -> str:
    """The name that a path or a folder above it must have to match the pattern; "" if the line has no pattern."""
    text = line.strip()
    if not text or line.startswith(("#", "!")):
        return ""
    if "\\" in line or text != line.rstrip():
        return "*"
    while text.endswith(("/", "/**")):
        text = text.removesuffix("/").removesuffix("/**")
    return text.rpartition("/")[2] or "*"


GENERATED = frozenset(
    ("__pycache__", "__pypackages__", "bower_components", "dist", "node_modules", "target", "venv")
)
"""Folders that programs fill: left out of listings, whether an ignore file names them or not.

Those that begin with a dot (`.venv`, `.tox`, `.mypy_cache`) are left out as hidden.
"""
GENERATED_BESIDE: Mapping[str, frozenset[str]] = {
    "build": frozenset(
        (
            "build.gradle", "build.gradle.kts", "CMakeLists.txt", "meson.build", "package.json", "pyproject.toml",
            "setup.cfg", "setup.py",
        )
    ),
}  # fmt: skip
"""Names that often stand for sources: such a folder is left out only beside one of these files."""


def generated_folders(folders: Iterable[str], files: Collection[str]) -> set[str]:
    """The folders of a place, with these files beside them, that hold what a program made."""
    return {
        name
        for name in folders
        if name in GENERATED or (name in GENERATED_BESIDE and not GENERATED_BESIDE[name].isdisjoint(files))
    }


def names_generated(folder: Path, workspace: Path) -> bool:
    """Whether a place that was asked for is such a folder or in one: then nothing is left out for this reason."""
    parts = folder.relative_to(workspace).parts if folder.is_relative_to(workspace) else folder.parts
    return any(part in GENERATED or part in GENERATED_BESIDE for part in parts)


IGNORE_FILE = ".gitignore"
_MAX_BYTES = 1024 * 1024
_FOLDER = "ps_d"
"""The group in pathspec's expressions that matches the end of a folder's name."""


def is_hidden(name: str) -> bool:
    """Whether a name starts with a dot."""
    return name.startswith(".")


class IgnoreRules:
    """The `.gitignore` files between a root and the folders below it; each is read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lines: dict[Path, list[str]] = {}
        self._specs: dict[Path, GitIgnoreSpec] = {}

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether the nearest ignore file with a matching pattern ignores the path; nothing outside the root is."""
        if not path.is_relative_to(self._root) or path == self._root:
            return False
        for folder in path.parents:
            if folder not in self._specs:
                self._specs[folder] = GitIgnoreSpec.from_lines(self.lines_in(folder))
            spec, relative = self._specs[folder], path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            verdict = spec.check_file(relative)
            if verdict.include or (verdict.index is not None and _matches_itself(spec, verdict.index, relative)):
                return bool(verdict.include)
            if folder == self._root:
                break
        return False

    def filter_for(self, folder: Path) -> IgnoreFilter:
        """A filter for the names in a folder, from the patterns of this folder and those above it."""
        if not folder.is_relative_to(self._root):
            return NO_FILTER
        above = NO_FILTER if folder == self._root else self.filter_for(folder.parent)
        return above.with_lines(self.lines_in(folder))

    def lines_in(self, folder: Path) -> list[str]:
        """The lines of a folder's own ignore file; none if it cannot be read."""
        if folder not in self._lines:
            self._lines[folder] = []
            with suppress(OSError):
                fd = os.open(folder / IGNORE_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    text = os.read(fd, _MAX_BYTES).decode("utf-8-sig", "replace")
                finally:
                    os.close(fd)
                self._lines[folder] = text.replace("\r\n", "\n").split("\n")
        return self._lines[folder]


def _matches_itself(spec: GitIgnoreSpec, index: int, path: str) -> bool:
    """Whether a pattern matches the path itself, not only a folder above it, which was checked before."""
    found = spec.patterns[index].match_file(path)
    return found is None or found.match.groupdict().get(_FOLDER) is None or found.match.end(_FOLDER) == len(path)
