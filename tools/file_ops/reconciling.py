"""What became of a file change that was broken off: read from the content, never guessed."""

from pathlib import Path

from tools.files import look
from tools.paths import PathRefused, ResolvedPath
from tools.result import InterruptedCall, Reconciliation

__all__ = ["reconcile_file"]

_MAX_BYTES = 1 << 30


def reconcile_file(call: InterruptedCall) -> Reconciliation:
    """Compares the file with the digests foreseen before it was touched."""
    if call.path is None or call.after_sha256 is None:
        return Reconciliation("unknown", "It was not recorded what the file was to become.")
    path = Path(call.path)
    try:
        now = look(ResolvedPath(call.path, path, inside=True, reaches_process=False), _MAX_BYTES).sha256
    except PathRefused as refused:
        return Reconciliation("unknown", f"The file cannot be looked at: {refused}")
    if now == call.after_sha256:
        return Reconciliation("already_applied", f"{call.path} has exactly the content this call was to write.")
    if now == call.before_sha256:
        was = (
            "does not exist, as before the call" if now is None else "has exactly the content from before the call"
        )
        return Reconciliation("not_applied", f"{call.path} {was}.")
    gone = "does not exist any more" if now is None else "has neither the old nor the new content"
    return Reconciliation("something_else", f"{call.path} {gone}: something else changed it too.")
