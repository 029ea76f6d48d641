"""Binds the run of a call to the paths it was judged by: what leads elsewhere then is judged anew, or refused."""

from collections.abc import Sequence
from pathlib import Path

from policy import CallFacts, PathFact, PolicySettings, judge
from tools.kinds import ToolErrorType
from tools.paths import PathRefused

__all__ = ["admitted_paths"]


def admitted_paths(facts: CallFacts, judged: Sequence[str] | None, policy: PolicySettings) -> frozenset[Path]:
    """The only paths the call may open: where its arguments lead now, if that was judged or is allowed unasked.

    Args:
        facts: the call as it is now.
        judged: where its arguments led when it was judged; None where nobody wrote that down.
        policy: what it is judged by now, where they lead elsewhere.

    Raises:
        PathRefused: somebody made them lead elsewhere, to where the call may not go unasked.
    """
    moved = [] if judged is None else [path for path in facts.paths if str(path.resolved) not in judged]
    if moved and judge(facts, policy).verdict != "allow":
        raise _refused(moved[0])
    return frozenset(Path(path.resolved) for path in facts.paths)


def _refused(path: PathFact) -> PathRefused:
    return PathRefused(
        ToolErrorType.PERMISSION,
        f"{path.given!r} leads to {str(path.resolved)!r} now, and led elsewhere when the call was judged. "
        "Nothing was done; make the call again.",
    )
