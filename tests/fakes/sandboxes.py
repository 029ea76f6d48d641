"""Sandboxes of a wanted kind, made of the real means; a test that needs what is not here says so aloud."""

import os
from pathlib import Path
from typing import Any

import pytest

from policy import PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_IN_PROJECTS, is_protected
from tools.sandbox import ProtectedNames, Sandbox, SandboxBackend, SandboxRules, detect_backend
from tools.sandbox.landlock import landlock_abi
from tools.sandbox.seccomp import is_known_machine

__all__ = ["NAMES", "needs", "sandbox"]

NAMES = ProtectedNames(
    is_protected,
    tuple(sorted(PROTECTED_FOLDERS & PROTECTED_IN_PROJECTS)),
    tuple(sorted(PROTECTED_FILES & PROTECTED_IN_PROJECTS)),
    tuple(sorted((PROTECTED_FOLDERS | PROTECTED_FILES) - PROTECTED_IN_PROJECTS)),
)
"""The names that the agent itself protects."""


def needs(kind: str) -> SandboxBackend:
    """The means of this kind; the test is skipped where they are missing."""
    found = detect_backend()
    if kind == "bubblewrap":
        if found.kind != "bubblewrap":
            pytest.skip(f"NOT TESTED, no bubblewrap sandbox here: {found.why}")
        return found
    abi = landlock_abi()
    if abi == 0 or not is_known_machine():
        pytest.skip(f"NOT TESTED, no Landlock sandbox here: version {abi}, {os.uname().machine}")
    return SandboxBackend("landlock", abi=abi)


def sandbox(kind: str, workspace: Path, **terms: Any) -> Sandbox:
    """A sandbox of this kind around a workspace."""
    means = needs(kind)
    more = terms.pop("writable", ())
    # In tests the home folder lies among temporary files.
    terms.setdefault("visible", (Path.home(),))
    return Sandbox(SandboxRules((workspace, *more), **({"names": NAMES} | terms)), look=lambda: means)
