"""Where a path leads, as policy wants to know it."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

from graph_agent.toolbox.wild_names import links_meant
from policy import PathFact, PolicySettings, is_reserved, named_folders, named_paths
from tools.paths import resolve
from tools.targets import PathTarget

__all__ = ["RuleNames", "Setting", "names_in_rules", "other_names", "path_fact"]


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
        others=other_names(found.path, names_in_rules(setting)),
        access=target.access,
        inside=found.inside,
        reserved=is_reserved(found.path, setting.workspace, policy.reserved, policy.open_files),
        is_memory=found.path in policy.open_files,
        reaches_process=found.reaches_process,
    )


def names_in_rules(setting: Setting) -> RuleNames:
    """As the file system is now."""
    policy = setting.policy
    rules = (*policy.rules.deny, *policy.rules.ask)
    folders = named_folders(rules, setting.workspace, policy.home)
    called = dict.fromkeys(name for folder, rest in folders for name in (folder, *links_meant(folder, rest)))
    places = ((PurePath(os.path.realpath(name)), name) for name in called)
    return RuleNames(
        named_paths(rules, setting.workspace, policy.home),
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
