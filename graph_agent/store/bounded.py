"""What was used last, up to a weight in all."""

from typing import Generic, TypeVar

__all__ = ["Bounded"]

K = TypeVar("K")
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """Values by key; those that were not asked for longest go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._kept: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        """The value, which from now on is the one used last."""
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        self._kept[key] = kept
        return kept[0]

    def put(self, key: K, value: V, weight: int) -> V:
        """Keep the value, at the cost of others; one that weighs more than all may is not kept."""
        _, before = self._kept.pop(key, (None, 0))
        self._weight -= before
        if weight <= self._most:
            self._kept[key] = (value, weight)
            self._weight += weight
        while self._weight > self._most:
            oldest = next(iter(self._kept))
            self._weight -= self._kept.pop(oldest)[1]
        return value
