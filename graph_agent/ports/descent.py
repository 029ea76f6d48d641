"""The ids that threads of sub-agents go by: they follow from the parent's thread and the call. Pure."""

import hashlib

__all__ = ["child_id", "moved_child"]


def child_id(parent_thread: str, call_id: str, undone: int) -> str:
    """The id of a sub-agent's thread: every life finds it; a call that runs again after a rewind gets another."""
    text = "\0".join((parent_thread, call_id, str(undone)))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def moved_child(child: str, call_id: str, attempts: int, of: tuple[str, str]) -> str | None:
    """The id of a sub-agent's thread under another parent; None where it is none of this call.

    Args:
        attempts: how many attempts at the call there were, of which a rewind may have undone some.
        of: the thread of its parent, and the other one.
    """
    parent, other = of
    for undone in range(attempts + 1):
        if child == child_id(parent, call_id, undone):
            return child_id(other, call_id, undone)
    return None
