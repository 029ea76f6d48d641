"""How long ago something was, in words, and how a person writes a span of time."""

import re
from datetime import UTC, datetime

from graph_agent.cli.views.screen import local_time
from graph_agent.errors import UsageError

__all__ = ["age", "age_seconds", "span_seconds", "time_and_age"]

_UNITS = (("d", 86_400, "d"), ("h", 3_600, "h"), ("m", 60, "min"), ("s", 1, "s"))


def age(iso: str | None) -> str:
    """How long ago a stored time was: `3 min ago`; as it is where it is no time."""
    seconds = age_seconds(iso)
    if seconds is None:
        return iso or ""
    for _, size, word in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {word} ago"
    return "just now"


def age_seconds(iso: str | None) -> float | None:
    """Seconds since a stored time; None where it is no time."""
    try:
        return max((datetime.now(UTC) - datetime.fromisoformat(iso or "")).total_seconds(), 0)
    except (ValueError, TypeError):
        return None


def time_and_age(iso: str | None) -> str:
    """A stored time as the local clock shows it, with how long ago that was."""
    return f"{local_time(iso)}, {age(iso)}" if age_seconds(iso) is not None else iso or ""


def span_seconds(written: str, option: str) -> float:
    """Seconds of a span such as `90s`, `10m`, `2h` or `3d`.

    Raises:
        UsageError: it is no such span.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", written.strip())
    if found is None:
        raise UsageError(f"{option} {written!r} is no span of time; write a number and s, m, h or d, such as 10m")
    sizes = {letter: size for letter, size, _ in _UNITS}
    return float(found[1]) * sizes[found[2]]
