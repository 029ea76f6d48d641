"""Where a path leads, as policy wants to know it."""

import os
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

from policy import PathFact, PolicySettings, is_reserved, named_paths
from tools.paths import resolve
from tools.targets import PathTarget

__all__ = ["Setting", "other_names", "path_fact"]


class Setting(NamedTuple):
    """What judging needs to know besides the call."""

    workspace: Path
    policy: PolicySettings
    roots: tuple[Path, ...] = ()
    """Folders beside the workspace that count as inside."""


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
        others=other_names(found.path, setting),
        access=target.access,
        inside=found.inside,
        reserved=is_reserved(found.path, setting.workspace, policy.reserved, policy.open_files),
        is_memory=found.path in policy.open_files,
        reaches_process=found.reaches_process,
    )


def other_names(path: Path, setting: Setting) -> tuple[PurePath, ...]:
    """Files that rules name and that are the same object as this one: hard links, or another spelling of it."""
    policy = setting.policy
    named = named_paths((*policy.rules.deny, *policy.rules.ask), setting.workspace, policy.home)
    return tuple(_same_as(path, named)) if named else ()


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
