"""Sandboxes of a wanted kind, made of the real means; a test that needs what is not here says so aloud."""

import os
from pathlib import Path
from typing import Any

import pytest

from policy import PLACED_IN_PROJECTS, PROTECTED_FILES, PROTECTED_FOLDERS, is_protected
from tools.sandbox import Means, Names, Sandbox, Terms, probed
from tools.sandbox.landlock import is_known_machine, landlock_abi

__all__ = ["NAMES", "needs", "sandbox"]

NAMES = Names(
    is_protected,
    tuple(sorted(PROTECTED_FOLDERS & PLACED_IN_PROJECTS)),
    tuple(sorted(PROTECTED_FILES & PLACED_IN_PROJECTS)),
    tuple(sorted((PROTECTED_FOLDERS | PROTECTED_FILES) - PLACED_IN_PROJECTS)),
)
"""The names that the agent itself protects."""


def needs(kind: str) -> Means:
    """The means of this kind; the test is skipped where they are missing."""
    found = probed()
    if kind == "bubblewrap":
        if found.kind != "bubblewrap":
            pytest.skip(f"NOT TESTED, no bubblewrap sandbox here: {found.why}")
        return found
    abi = landlock_abi()
    if abi == 0 or not is_known_machine():
        pytest.skip(f"NOT TESTED, no Landlock sandbox here: version {abi}, {os.uname().machine}")
    return Means("landlock", abi=abi)


def sandbox(kind: str, workspace: Path, **terms: Any) -> Sandbox:
    """A sandbox of this kind around a workspace."""
    means = needs(kind)
    more = terms.pop("writable", ())
    # In tests the home folder lies among temporary files.
    terms.setdefault("visible", (Path.home(),))
    return Sandbox(Terms((workspace, *more), **({"names": NAMES} | terms)), look=lambda: means)
