"""What a PostgreSQL server complains about, in sentences that say what to do."""

import re
from collections.abc import Mapping

import psycopg

from graph_agent.config.paths import ServerPath
from graph_agent.errors import AgentError, InternalError, StorageError

__all__ = ["TIMEOUT_S", "connect_error", "translate_error"]

TIMEOUT_S = 30
"""How long a statement may take and a lock is waited for: as long as a busy file is."""
_CONNECTIONS = "it has no connection left. Close other programs, or raise max_connections there"
_STARTING = "it is starting up or shutting down. Try again in a moment"
_KEPT = "Nothing acknowledged is lost: continue once it is back"
_CONFLICT = "another process changed the same rows at the same time. Try again"
_BY_STATE: Mapping[str, str] = {
    "25006": "it only takes reads, as a standby does. Name the primary server",
    "25P03": "this process paused within a transaction, which was rolled back. Try again",
    "40001": _CONFLICT,
    "40P01": _CONFLICT,
    "42501": "this user may not do that. Grant it the right to use the schema, or to create one in the database",
    "53100": "its disk is full. Free some space there, then continue: nothing acknowledged is lost",
    "53200": "it is out of memory. Try again when it has less to do",
    "53300": _CONNECTIONS,
    "55P03": f"another process has kept it busy for {TIMEOUT_S} seconds. Find it in pg_stat_activity there",
    "57014": f"a statement took longer than {TIMEOUT_S} seconds. Try again when it has less to do",
    "57P01": f"it was shut down, or ended the connection. {_KEPT}",
    "57P02": f"it crashed. {_KEPT}",
    "57P03": _STARTING,
}
"""What to do, by SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html)."""
_OURS = ("0A", "22", "23", "26", "42")
"""Classes of errors that a right statement does not get."""
_AT_CONNECT: tuple[tuple[str, str], ...] = (
    (
        "authentication failed|no password supplied",
        "check the user and the password: in the URL, in PGPASSWORD or in ~/.pgpass",
    ),
    (r'role ".*" does not exist', "the server has no such user. Create it, or name another in the URL"),
    (r'database ".*" does not exist', "create it with `createdb`, or name another in the URL"),
    ("too many clients|remaining connection slots|too many connections", _CONNECTIONS),
    ("starting up|shutting down|recovery mode|not yet accepting|postmaster exit", _STARTING),
    (r"pg_hba\.conf|SSL", "it refuses such connections. Check its pg_hba.conf, and sslmode in the URL"),
    ("resolve host|translate host name|not known", "check the name of the host in the URL"),
    (r"invalid (integer|port|URI|connection option|percent-encoded)|missing \"=\"|unexpected", "check the URL"),
)
"""What to do, by the words of the server, which gives no SQLSTATE before there is a session."""


def connect_error(path: ServerPath, error: psycopg.Error) -> StorageError:
    """The error about a session that could not be opened."""
    words = _words(path, error)
    advice = (advice for pattern, advice in _AT_CONNECT if re.search(pattern, words))
    what = next(advice, "check that the server runs and can be reached from here")
    return StorageError(f"cannot connect to the database {str(path)!r} ({words}): {what}")


def translate_error(path: ServerPath, error: psycopg.Error) -> AgentError:
    """The exception to raise instead: it names the database, the problem and what to do."""
    words, state = _words(path, error), error.sqlstate or ""
    if state in _BY_STATE:
        return StorageError(f"cannot use the database {str(path)!r} ({words}): {_BY_STATE[state]}")
    if state.startswith(_OURS) or isinstance(error, psycopg.ProgrammingError | psycopg.DataError):
        return InternalError(f"a statement on {str(path)!r} broke a rule of the schema: {words}")
    if not state:
        return StorageError(f"the connection to the database {str(path)!r} was lost ({words}). {_KEPT}")
    return StorageError(f"cannot use the database {str(path)!r} ({words}): see the log of the server")


def _words(path: ServerPath, error: psycopg.Error) -> str:
    """What the server or the driver said, in one line and without the password."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text.replace(path.password, "***") if path.password else text
