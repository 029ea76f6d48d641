"""Where a path leads, and by which other names policy rules refer to it."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePath
from typing import NamedTuple

from policy import PathFact, PolicySettings, exact_rule_paths, is_reserved, rule_folders
from tools.base import PathTarget
from tools.paths import resolve

__all__ = ["RuleNames", "Setting", "links_meant", "names_in_rules", "other_names", "path_fact"]

_WILD = {"*": ".*", "?": "."}
_MOST_FOLDERS = 500
"""So many are looked into for one rule."""


def links_meant(folder: PurePath, names: Sequence[str]) -> Iterator[PurePath]:
    """Every link among what the names mean, one below the other; none from `**` on: that is the whole tree."""
    names = tuple(takewhile(lambda name: "**" not in name, names))
    waiting = [(folder, 0)] if any(sign in name for name in names for sign in _WILD) else []
    for _ in range(_MOST_FOLDERS):
        if not waiting:
            return
        place, at = waiting.pop(0)
        for entry in _entries(place, names[at]):
            if entry.is_symlink():
                yield place / entry.name
            if at + 1 < len(names) and _is_folder(entry):
                waiting.append((place / entry.name, at + 1))


def _entries(folder: PurePath, name: str) -> list["os.DirEntry[str]"]:
    meant = _compiled(name)
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if meant.fullmatch(entry.name)]
    except OSError:
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


@lru_cache(maxsize=512)
def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(
        "".join(_WILD.get(piece) or re.escape(piece) for piece in re.split(r"([*?])", name)), re.DOTALL
    )


class Setting(NamedTuple):
    """What judging needs to know besides the call."""

    workspace: Path
    policy: PolicySettings
    roots: tuple[Path, ...] = ()
    """Folders beside the workspace that count as inside."""


class RuleNames(NamedTuple):
    """What the rules that forbid and ask name in the file system."""

    files: tuple[PurePath, ...]
    """Those named exactly."""
    links: tuple[tuple[PurePath, PurePath], ...]
    """What is named by way of a link, or lies below it: where each lies, and what the rules call it."""


def path_fact(target: PathTarget, setting: Setting, base: Path | None = None) -> PathFact:
    """The resolved path with what there is to say about it.

    Raises:
        PathRefused: it cannot be resolved.
    """
    found = resolve(target.text, workspace=setting.workspace, base=base, roots=setting.roots)
    policy = setting.policy
    return PathFact(
        given=target.text,
        resolved=found.path,
        aliases=other_names(found.path, names_in_rules(setting)),
        access=target.access,
        inside=found.inside,
        reserved=is_reserved(found.path, setting.workspace, policy.reserved, policy.exempt_files),
        is_memory=found.path in policy.exempt_files,
        exposes_process=found.exposes_process,
    )


def names_in_rules(setting: Setting) -> RuleNames:
    """As the file system is now."""
    policy = setting.policy
    rules = (*policy.rules.deny, *policy.rules.ask)
    folders = rule_folders(rules, setting.workspace, policy.home)
    called = dict.fromkeys(name for folder, rest in folders for name in (folder, *links_meant(folder, rest)))
    places = ((PurePath(os.path.realpath(name)), name) for name in called)
    return RuleNames(
        exact_rule_paths(rules, setting.workspace, policy.home),
        tuple((place, name) for place, name in places if place != name),
    )


def other_names(path: Path, names: RuleNames) -> tuple[PurePath, ...]:
    """Names by which rules mean this very path: hard links of it, another spelling, a way through a link."""
    same = _same_as(path, names.files) if names.files else ()
    below = (name / path.relative_to(place) for place, name in names.links if path.is_relative_to(place))
    return tuple(dict.fromkeys((*same, *below)))


def _same_as(path: Path, named: Iterable[PurePath]) -> Iterable[PurePath]:
    try:
        status = path.stat(follow_symlinks=False)
    except OSError:
        return
    for name in named:
        try:
            is_same = name != path and os.path.samestat(status, os.stat(name))  # noqa: PTH116 - a pure path
        except OSError:
            continue
        if is_same:
            yield name
