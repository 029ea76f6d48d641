"""How a background shell ended, and for how long it has been running, in words."""

from collections.abc import Mapping

from graph_agent.ports.shells import ShellEnding
from tools.shell_ops.telling import code_in_words

__all__ = ["ending_in_words", "lasting"]

_REASONS: Mapping[str, str] = {
    "kill": "ended by bash_kill",
    "flood": "ended because it wrote more than it may; only the beginning was kept",
    "session": "ended with the session that started it",
    "found": "ended because the program that started it had died",
    "walls": "never ran, as its sandbox could not be set up",
}


def ending_in_words(ending: ShellEnding, command: str) -> str:
    """What a person and the model are told of it."""
    if ending.why in _REASONS:
        return _REASONS[ending.why]
    code = "" if ending.code is None else code_in_words(ending.code, command)
    if ending.why == "unseen":
        return (
            f"ended while nobody watched, {code}"
            if code
            else "ended with the program that had started it, or after"
        )
    return code or "ended, nobody knows how"


def lasting(seconds: float) -> str:
    """A time span as a person says it."""
    whole = max(0, round(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"
