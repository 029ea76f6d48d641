"""A connection to a PostgreSQL server that takes statements written for SQLite."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import Int8Dumper, NumericBinaryLoader
from psycopg.types.string import StrDumper

from graph_agent.config.paths import ServerPath
from graph_agent.storage.postgres.errors import TIMEOUT_S, connect_error
from graph_agent.storage.postgres.translation import NUL, SCHEMA, bind, translate

__all__ = ["PostgresConnection", "PostgresCursor", "Values", "connect", "lock_number"]

Values = Sequence[Any] | Mapping[str, Any]

_DEFAULTS: Mapping[str, Any] = {
    "application_name": "graph-agent",
    "connect_timeout": 5,
    # A cut link is noticed within seconds on both sides: a host that is gone must not keep its threads.
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 3000,
}
"""Connection parameters that the URL can replace."""
_SESSION: Mapping[str, Any] = {
    "search_path": SCHEMA,
    "statement_timeout": f"{TIMEOUT_S}s",
    "lock_timeout": f"{TIMEOUT_S}s",
    # For so long, at most, others wait for the locks of a process that was paused.
    "idle_in_transaction_session_timeout": "3s",
    "standard_conforming_strings": "on",
    "client_min_messages": "warning",
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 2,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 8000,
}


def connect(path: ServerPath, *, is_read_only: bool = False) -> psycopg.Connection[Any]:
    """A session on the server in autocommit mode.

    Raises:
        StorageError: the connection failed; the message says why and what to do.
    """
    session = {**_SESSION, **({"default_transaction_read_only": "on"} if is_read_only else {})}
    try:
        given = conninfo_to_dict(path.url)
        options = " ".join(
            [str(given.pop("options", "") or ""), *(f"-c {key}={one}" for key, one in session.items())]
        )
        parameters = {**_DEFAULTS, **given, "options": options.strip()}
        connection = psycopg.connect(**parameters, autocommit=True)
    except psycopg.Error as error:
        raise connect_error(path, error) from None
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(int, Int8Dumper)
    adapters.register_dumper(bool, _BoolDumper)
    adapters.register_loader("text", _TextLoader)
    for name in ("json", "varchar", "name"):
        adapters.register_loader(name, _TextLoader)
    adapters.register_loader("bool", _BoolLoader)
    adapters.register_loader("numeric", _IntegerLoader)
    return connection


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj or NUL in obj:
            obj = obj.replace(NUL, f"{NUL}1").replace("\0", f"{NUL}0")
        return super().dump(obj)


class _BoolDumper(Int8Dumper):
    """A flag is a number, as in SQLite."""

    def dump(self, obj: bool) -> Buffer | None:
        return b"1" if obj else b"0"


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return text.replace(f"{NUL}0", "\0").replace(f"{NUL}1", NUL) if NUL in text else text


class _BoolLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> int:
        return bytes(data)[0]


class _IntegerLoader(NumericBinaryLoader):
    """A sum of whole numbers."""

    def load(self, data: Buffer) -> Any:
        return int(super().load(data))


class PostgresCursor:
    """The result of a statement; see `storage.Cursor`."""

    def __init__(self, cursor: psycopg.Cursor[Any] | None = None) -> None:
        self._cursor = cursor if cursor is not None and cursor.description is not None else None
        self.rowcount = -1 if cursor is None else cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        row = self.fetchone()
        return None if row is None else int(row[0])

    def fetchone(self) -> Any:
        return None if self._cursor is None else self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return [] if self._cursor is None else self._cursor.fetchall()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


class _Ancestors(PostgresCursor):
    """The ancestors of a checkpoint, fetched as needed: first a few, then four times as many, and so on."""

    _FIRST = 8

    def __init__(self, session: psycopg.Connection[Any], query: bytes, named: Mapping[str, Any]) -> None:
        super().__init__()
        self._session, self._query, self._named = session, query, dict(named)

    def __iter__(self) -> Iterator[Any]:
        limit = self._FIRST
        while True:
            rows = self._session.execute(b"%b LIMIT %d" % (self._query, limit), self._named, binary=True).fetchall()
            yield from rows
            if len(rows) < limit or rows[-1][1] is None:
                return
            self._named["p3"], limit = rows[-1][1], 4 * limit

    def fetchone(self) -> Any:
        return next(iter(self), None)

    def fetchall(self) -> list[Any]:
        return list(self)


class PostgresConnection:
    """See `storage.Connection`."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.session = connection
        self.is_uncertain = False
        """Whether something was sent that may have been committed, since the caller last looked."""

    @property
    def in_transaction(self) -> bool:
        return self.session.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    @property
    def is_lost(self) -> bool:
        """Whether the session has ended."""
        return bool(self.session.closed or self.session.broken)

    def begin(self, thread_id: str, leased: Sequence[str] = ()) -> dict[str, str]:
        """Begin a transaction and wait for its lock: on its thread, or without a thread on the whole database.

        Returns the token in the lease of each leased thread; nobody can change it until the transaction ends.
        """
        locks = f"pg_advisory_xact_lock({_DATABASE_LOCK})"
        if thread_id:  # Transactions of other threads run beside it, those of the whole database do not.
            own = lock_number("turn", thread_id)
            locks = f"pg_advisory_xact_lock_shared({_DATABASE_LOCK}), pg_advisory_xact_lock({own})"
        statements = f"BEGIN; SELECT {locks}"
        if leased:
            # The weaker locks of a row let another process take the lease, and then this one writes all the same.
            ids = ", ".join(sql.Literal(thread).as_string(self.session) for thread in leased)
            statements += f"; SELECT thread_id, owner_token FROM leases WHERE thread_id IN ({ids}) FOR SHARE"  # noqa: S608 - quoted
        cursor = self.session.execute(statements.encode(), prepare=False)
        while cursor.nextset():
            continue
        return dict(cursor.fetchall()) if leased else {}

    def commit(self) -> None:
        """Commit; if this fails, it is unknown whether the transaction was committed."""
        self.is_uncertain = True
        self.session.execute("COMMIT")

    def rollback(self) -> None:
        """Roll back the open transaction, if there is one and the session has not ended."""
        if not self.is_lost and self.in_transaction:
            self.session.execute("ROLLBACK")

    def execute(self, sql: str, parameters: Values = (), /) -> PostgresCursor:
        statement = translate(sql)
        values = bind(statement, parameters)
        if statement.reads_ancestors and isinstance(values, Mapping):
            return _Ancestors(self.session, statement.query, values)
        if not self.in_transaction and not statement.only_reads:
            self.is_uncertain = True
        try:
            return PostgresCursor(self.session.execute(statement.query, values, binary=True))
        except psycopg.IntegrityError as error:
            raise sqlite3.IntegrityError(str(error)) from error

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> PostgresCursor:
        statement = translate(sql)
        self.is_uncertain = self.is_uncertain or not self.in_transaction
        rows = [bind(statement, one) for one in parameters]
        cursor = self.session.cursor()
        if len(rows) > _FEW_ROWS:
            cursor.executemany(statement.query, rows)
            self.session.execute("")  # Starts the time of `idle_in_transaction_session_timeout`, see below.
        else:
            for row in rows:
                cursor.execute(statement.query, row, binary=True)
        return PostgresCursor(cursor)

    def close(self) -> None:
        self.session.close()


_FEW_ROWS = 16
"""Up to so many are sent one by one. The driver ends a batch with a flush: if the process is paused there, the
server waits for it without a limit, and nobody can take its thread over."""
_DATABASE_LOCK = int.from_bytes(b"gagent", "big")


def lock_number(kind: str, name: str) -> int:
    """The number of a lock on the server."""
    digest = hashlib.sha256(f"{kind} {name}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
