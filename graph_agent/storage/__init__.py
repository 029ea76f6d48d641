"""Durable storage: checkpoints, journal, decisions, locks and blobs.

Importing the package imports nothing else: short-lived commands use single modules without LangGraph.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

__all__ = ["Connection", "Cursor"]


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows a statement has changed."""
        ...

    @property
    def lastrowid(self) -> int | None:
        """The number of the row that was inserted."""
        ...

    def fetchone(self) -> Any:
        """The next row, a tuple; None at the end."""
        ...

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What statements are given to: a connection of `sqlite3`, or one to a server that translates them.

    Statements are written for SQLite. Rows that exclude each other raise `sqlite3.IntegrityError`.
    """

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way."""
        ...

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ..., /) -> Cursor:
        """Run a statement."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor:
        """Run a statement once for each of the values."""
        ...
