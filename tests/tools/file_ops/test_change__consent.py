from pathlib import Path
from typing import Any

import pytest

from tools.file_ops.change import find_conflict
from tools.files import Snapshot, sha256_hex
from tools.paths import ResolvedPath

_RESOLVED = ResolvedPath("f", Path("/w/f"), inside=True, exposes_process=False)
_OLD, _NEW = sha256_hex(b"old"), sha256_hex(b"new")


def _seen(path: str = "/w/f", sha256: str | None = _OLD) -> dict[str, Any]:
    return {"path": path, "device": 1, "inode": 2, "sha256": sha256}


@pytest.mark.parametrize(
    ("data", "known", "seen", "part"),
    [
        (None, None, None, None),
        (None, _OLD, None, None),
        (None, None, _seen(sha256=None), None),
        (b"old", _OLD, None, None),
        (b"old", _OLD, _seen(), None),
        (b"new", _NEW, _seen(), None),
        (None, _OLD, _seen(), "was deleted"),
        (b"old", None, None, "was not read"),
        (b"new", _OLD, _seen(), "changed by someone else"),
        (b"old", _OLD, _seen("/w/g"), "the approval was for"),
        (b"old", None, _seen(sha256=None), "was not read"),
    ],
)
def test_only_what_is_known_and_was_shown_may_be_overwritten(
    data: bytes | None, known: str | None, seen: dict[str, Any] | None, part: str | None
) -> None:
    refused = find_conflict(Snapshot(_RESOLVED, data), known, seen)

    assert (refused is None) is (part is None)
    assert part is None or part in str(refused)
