"""Creates the tables on a server, and migrates them to the version that this program writes.

New tables are those of a file of version 16; every later migration is translated.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from graph_agent.config.paths import ServerPath
from graph_agent.errors import DamagedDatabase, NewerSchema, NothingYet, StorageError
from graph_agent.storage.postgres.connection import PostgresConnection
from graph_agent.storage.postgres.functions import FUNCTIONS, FUNCTIONS_VERSION, TRIGGERS
from graph_agent.storage.postgres.translation import SCHEMA, translate_schema
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, Migration, load_migrations
from graph_agent.storage.sqlite.schema import create_tables

__all__ = ["bring_up", "require_readable"]

_FIRST = 16
"""The oldest schema version on servers."""
_FIRST_WITH_TASKS = 17
_SERVER_PARTS = f"""
CREATE TABLE schema_version (version BIGINT NOT NULL, functions BIGINT NOT NULL);
INSERT INTO schema_version VALUES ({_FIRST}, 0);
ALTER TABLE leases ADD COLUMN pid_namespace TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE leases ADD COLUMN expires_at TIMESTAMPTZ NOT NULL DEFAULT '-infinity';
ALTER TABLE leases SET (fillfactor = 50);
CREATE TABLE blobs (
    digest TEXT COLLATE "C" PRIMARY KEY,
    content BYTEA NOT NULL,
    stored_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
"""  # noqa: S608 - a number
# A rewind copied from a file keeps its number; the next one must get a higher one.
_REWIND_NUMBERS = """
CREATE FUNCTION rewind_was_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM setval('rewinds_id_seq', NEW.id) FROM rewinds_id_seq WHERE NEW.id > last_value;
    RETURN NULL;
END $$;
CREATE TRIGGER rewind_was_inserted AFTER INSERT ON rewinds FOR EACH ROW EXECUTE FUNCTION rewind_was_inserted();
"""
_EXISTS = "SELECT to_regclass(%s) IS NOT NULL, to_regnamespace(%s) IS NOT NULL"
_MIGRATION_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('graph-agent schema', 0))"


def bring_up(
    path: ServerPath, connection: PostgresConnection, migrations: Sequence[Migration] | None = None
) -> None:
    """Create the tables or migrate them where needed, in one transaction.

    Raises:
        NewerSchema: a newer version of the program wrote them; they are left as they were.
        StorageError: the server only takes reads.
        psycopg.Error: for the caller to translate.
    """
    newest = SCHEMA_VERSION if migrations is None else len(migrations)
    [read_only] = _row(connection, "SELECT current_setting('transaction_read_only')")
    if read_only == "on":
        raise StorageError(
            f"the database {str(path)!r} only takes reads, as a standby does. Name the primary server; threads can "
            "be shown from here, but not continued"
        )
    versions = _versions(path, connection, newest)
    if versions == (newest, FUNCTIONS_VERSION):
        return
    with connection.session.transaction():
        connection.session.execute(_MIGRATION_LOCK)
        version, functions = _versions(path, connection, newest) or _create(connection)
        for number, migration in enumerate((migrations or load_migrations())[version:newest], version + 1):
            _apply(connection, number, migration)
        if functions < FUNCTIONS_VERSION:
            connection.session.execute(FUNCTIONS, prepare=False)
            if newest >= _FIRST_WITH_TASKS:
                connection.session.execute(TRIGGERS, prepare=False)
            connection.session.execute("UPDATE schema_version SET functions = %s", (FUNCTIONS_VERSION,))


def require_readable(path: ServerPath, connection: PostgresConnection) -> None:
    """Refuse what cannot be read as it is.

    Raises:
        NothingYet: there are no tables.
        NewerSchema: a newer version of the program wrote them.
        StorageError: an older one did, so that they have to be migrated first.
    """
    versions = _versions(path, connection, SCHEMA_VERSION)
    if versions is None:
        raise NothingYet(
            f"there is nothing yet: no threads in the database {path}. `graph-agent chat` starts the first one."
        )
    if versions[0] < SCHEMA_VERSION or versions[1] < FUNCTIONS_VERSION:
        raise StorageError(
            f"the database {path} was written by an older version of the program. Any command that writes migrates "
            "it, such as `graph-agent chat`"
        )


def _versions(path: ServerPath, connection: PostgresConnection, newest: int) -> tuple[int, int] | None:
    """The versions of the tables and of the functions; None where there are none yet."""
    has_version, has_schema = _row(connection, _EXISTS, (f"{SCHEMA}.schema_version", SCHEMA))
    if not has_version:
        if has_schema and _row(connection, _HAS_TABLES, (SCHEMA,))[0]:
            raise DamagedDatabase(
                f"the schema {SCHEMA} in the database {path} holds tables of another program, or lacks its "
                "version. Rename it, or name another database with --db."
            )
        return None
    version, functions = _row(connection, "SELECT version, functions FROM schema_version")
    if version > newest:
        raise NewerSchema(
            f"{path} has schema version {version}, this program knows up to {newest}; "
            "update the program, or name another database with --db."
        )
    return version, functions


_HAS_TABLES = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s)"


_PARTS = """
SELECT sql FROM sqlite_schema WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite@_%' ESCAPE '@'
ORDER BY type DESC, rowid
"""


def _create(connection: PostgresConnection) -> tuple[int, int]:
    session = connection.session
    session.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
    with closing(sqlite3.connect(":memory:")) as model:
        create_tables(model, _FIRST)
        parts = model.execute(_PARTS).fetchall()
    for (part,) in parts:
        for statement in translate_schema(part):
            session.execute(statement.encode(), prepare=False)
    session.execute(_SERVER_PARTS.encode(), prepare=False)
    session.execute(_REWIND_NUMBERS, prepare=False)
    return _FIRST, 0


def _apply(connection: PostgresConnection, number: int, migration: Migration) -> None:
    for statement in translate_schema(migration.sql):
        connection.session.execute(statement.encode(), prepare=False)
    if migration.fill is not None:
        migration.fill(connection)
    connection.session.execute("UPDATE schema_version SET version = %s", (number,))


def _row(connection: PostgresConnection, sql: str, values: Sequence[Any] = ()) -> Any:
    return connection.session.execute(sql.encode(), values, binary=True).fetchone()
