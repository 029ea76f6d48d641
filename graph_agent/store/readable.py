"""Reading a damaged table row by row, past what cannot be read. Knows no table of ours."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from graph_agent.store.faults import UNREADABLE

__all__ = ["ReadableRows"]

_HIGHEST = 2**62
"""Beyond any number a row has."""

Row = tuple[Any, ...]


class ReadableRows:
    """The rows of a table that can be read. Iterated once; afterwards `lost` says how many could not.

    Rows come in the order of their numbers, each behind its number; those of a table without numbers as they are.
    """

    def __init__(self, source: sqlite3.Connection, table: str, columns: Sequence[str], keys: Sequence[str]) -> None:
        self.is_whole = True
        """False once something could not be read."""
        self._source = source
        self._table = table
        self._columns = ", ".join(columns)
        self._keys = keys
        self._taken = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._from_both_ends() if self._keys else self._by_number():
            self._taken += 1
            yield row

    @property
    def lost(self) -> int | None:
        """How many rows could not be read; None where nothing tells how many there were."""
        if self.is_whole:
            return 0
        try:
            # Counted in the smallest index, which may be readable where the table is not.
            [count] = self._source.execute(f"SELECT count(*) FROM {self._table}").fetchone()  # noqa: S608 - a name
        except UNREADABLE:
            return None
        return max(int(count) - self._taken, 0) or None

    def _by_number(self) -> Iterator[Row]:
        after: int | None = -1
        while after is not None:
            start = last = after
            try:
                for row in self._rows("rowid > ? ORDER BY rowid", last):
                    last = row[0]
                    yield row
                after = None
            except UNREADABLE:
                self.is_whole = False
                # One that can be read by itself and not in passing is stepped over.
                after = self._next_place(last if last > start else last + 1)

    def _next_place(self, after: int) -> int | None:
        """The number before the next row that can be read; None where there is none."""
        step = 1
        while not self._is_readable(after + step):
            step *= 2
            if after + step > _HIGHEST:
                return None
        low, high = after + step // 2, after + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_readable(middle) else (middle, high)
        return high - 1

    def _is_readable(self, number: int) -> bool:
        """Whether the first row from this number on can be read; also where there is none."""
        try:
            for _ in self._rows("rowid >= ? ORDER BY rowid LIMIT 1", number):
                pass
        except UNREADABLE:
            return False
        return True

    def _rows(self, condition: str, number: int) -> Iterator[Row]:
        yield from self._source.execute(
            f"SELECT rowid, {self._columns} FROM {self._table} NOT INDEXED WHERE {condition}",  # noqa: S608 - names only
            (number,),
        )

    def _from_both_ends(self) -> Iterator[Row]:
        seen: set[Row] = set()
        for order in ("ASC", "DESC"):
            ordered = ", ".join(f"{key} {order}" for key in self._keys)
            try:
                for row in self._source.execute(f"SELECT {self._columns} FROM {self._table} ORDER BY {ordered}"):  # noqa: S608 - names only
                    if row in seen:
                        break
                    seen.add(row)
                    yield row
            except UNREADABLE:
                self.is_whole = False
            if self.is_whole:
                break
