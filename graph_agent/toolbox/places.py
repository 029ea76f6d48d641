"""Where a path leads, as policy wants to know it."""

from pathlib import Path
from typing import NamedTuple

from policy import PathFact, PolicySettings, is_reserved
from tools.paths import resolve
from tools.targets import PathTarget

__all__ = ["Setting", "path_fact"]


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
        access=target.access,
        inside=found.inside,
        reserved=is_reserved(found.path, setting.workspace, policy.reserved, policy.open_files),
        is_memory=found.path in policy.open_files,
        reaches_process=found.reaches_process,
    )
