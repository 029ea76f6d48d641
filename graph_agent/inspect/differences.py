"""What differs between two states, place by place. Lists of things with ids are compared by id, not by position."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Change", "differences"]

_IDS = ("id", "call_id")
"""Fields by which an entry of a list is told from the others: messages have the first, calls the second."""


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs."""

    path: str
    """Dotted, as `inspect --path` takes it; entries of a list with ids are named by their id."""
    op: Literal["added", "removed", "changed"]
    old: Any
    """None where it was added."""
    new: Any
    """None where it was removed."""


def differences(old: Any, new: Any) -> list[Change]:
    """Every place where two JSON values differ, in the order of the new one; what was removed comes last."""
    return list(_compared(old, new, ""))


def _compared(old: Any, new: Any, path: str) -> Iterator[Change]:
    before, after = _by_name(old), _by_name(new)
    if before is None or after is None or type(old) is not type(new):
        # 1 and True are equal in Python, and two things in a state.
        if type(old) is not type(new) or old != new:
            yield Change(path, "changed", old, new)
        return
    for name, value in after.items():
        place = f"{path}.{name}" if path else name
        if name in before:
            yield from _compared(before[name], value, place)
        else:
            yield Change(place, "added", None, value)
    for name, value in before.items():
        if name not in after:
            yield Change(f"{path}.{name}" if path else name, "removed", value, None)


def _by_name(value: Any) -> Mapping[str, Any] | None:
    """The parts of a value by name; None for a value without parts."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return None
    for field in _IDS:
        names = [str(item[field]) for item in value if isinstance(item, dict) and item.get(field)]
        if len(names) == len(value) == len(set(names)):
            return dict(zip(names, value, strict=True))
    return {str(position): item for position, item in enumerate(value)}
