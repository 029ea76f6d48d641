"""Whether a file may still be overwritten: it must be what the thread knows, and what was consented to."""

from collections.abc import Mapping
from typing import Any

from tools.files import Snapshot
from tools.kinds import ToolErrorType
from tools.paths import PathRefused

__all__ = ["objection"]


def objection(now: Snapshot, known: str | None, seen: Mapping[str, Any] | None) -> PathRefused | None:
    """Why the file must not be overwritten, or None.

    Args:
        now: the file as it is.
        known: digest the thread last read or wrote there.
        seen: what the preview was made from; a later write of this very thread does not spoil it.
    """
    given = now.resolved.given
    if seen is not None and seen["path"] != str(now.resolved.path):
        return _refused(f"{given!r} leads to {now.resolved.path} now, but {seen['path']} was shown for consent.")
    if now.sha256 is None:
        was_shown = seen is not None and seen["sha256"] is not None
        return _refused(f"{given!r} was deleted after the change was shown.") if was_shown else None
    if known is None:
        return _refused(f"{given!r} exists and was not read in this conversation; read it with read_file first.")
    if known != now.sha256:
        return _refused(f"{given!r} was changed by someone else since it was last read; read it again first.")
    return None


def _refused(message: str) -> PathRefused:
    return PathRefused(ToolErrorType.VALIDATION, f"{message} Nothing was written.")
