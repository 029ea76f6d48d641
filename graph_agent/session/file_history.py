"""What a thread's calls did to each file, according to their records."""

from collections.abc import Iterable, Sequence

from graph_agent.ports import ExecutedAttempt

__all__ = ["changes_by_path", "find_foreign_change"]


def changes_by_path(done: Iterable[ExecutedAttempt]) -> dict[str, list[ExecutedAttempt]]:
    """The changes to each file, oldest first. A write that ended in an error changed nothing."""
    changes: dict[str, list[ExecutedAttempt]] = {}
    for one in done:
        if one.intent is not None and one.status != "error":
            changes.setdefault(one.intent.path, []).append(one)
    return changes


def find_foreign_change(
    now: str | None, changes: Sequence[ExecutedAttempt], done: Iterable[ExecutedAttempt] = ()
) -> str:
    """Who else changed a file, in words; empty if it is what these changes left.

    Args:
        now: digest of the file; None if it does not exist.
        changes: the thread's changes to this file, oldest first.
        done: everything the thread did: one of its commands may have been seen to change the file.
    """
    who = "a command of this thread" if any(_has_changed(one, changes[0]) for one in done) else "somebody else"
    possible: set[str | None] = set()
    for position, one in enumerate(changes):
        intent = one.intent
        if intent is None:
            continue
        if position and intent.before_sha256 not in possible:
            return f"{who} changed it between two changes of this thread"
        is_sure = one.status == "success"
        possible = {intent.after_sha256} if is_sure else {*possible, intent.before_sha256, intent.after_sha256}
    if now in possible:
        return ""
    return f"it was removed by {who}" if now is None else f"it was changed by {who} since"


def _has_changed(command: ExecutedAttempt, change: ExecutedAttempt) -> bool:
    path = change.intent.path if change.intent else ""
    return any(path.endswith(f"/{name}") for name in command.changed_files or ())
