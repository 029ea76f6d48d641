"""The journal of tool calls, in a file or on a server: each attempt is claimed in it before its tool runs.

The tables are those of the agent's own database, so its commands read, list and answer these calls too. Two
tables come in addition: which worker owns a claim and when it was last seen, and which questions were asked.
"""

import os
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4
from weakref import WeakSet

from graph_agent.calls import args_digest
from graph_agent.durable.tool_policy import CallHeld
from graph_agent.errors import StorageError
from graph_agent.ports import Answer, Question, QuestionKind, SystemClock
from graph_agent.ports.background import boot_id, process_started
from graph_agent.ports.stored_text import json_text, storable
from graph_agent.storage import Connection, named_server, open_blocking
from graph_agent.storage.sqlite.database import transaction
from graph_agent.storage.sqlite.database_file import translate_error
from graph_agent.storage.sqlite.decisions import find_answer, insert_answer
from graph_agent.storage.sqlite.journal import finish_claim, insert_claim
from graph_agent.storage.sqlite.row_values import load_json
from graph_agent.storage.sqlite.schema import open_connection
from graph_agent.storage.sqlite.thread_lock import write_lease

if TYPE_CHECKING:
    from graph_agent.storage.postgres.database import PostgresDatabase

__all__ = ["CallEntry", "Claim", "Journal", "JournalCall"]

T = TypeVar("T")

_OWN_TABLES = """
CREATE TABLE IF NOT EXISTS call_owners (
    owner TEXT PRIMARY KEY, pid INTEGER NOT NULL, process_started TEXT NOT NULL, place TEXT NOT NULL,
    host TEXT NOT NULL, since TEXT NOT NULL, renewed_at DOUBLE PRECISION NOT NULL,
    lease_s DOUBLE PRECISION NOT NULL
);
CREATE TABLE IF NOT EXISTS asked_questions (
    task TEXT NOT NULL, round INTEGER NOT NULL, call_id TEXT NOT NULL, attempt INTEGER NOT NULL,
    PRIMARY KEY (task, round, call_id)
);
"""
_NEWEST = """
SELECT attempt, owner, status, started_at, outcome FROM journal
WHERE thread_id = ? AND call_id = ? AND reverted = 0 ORDER BY outcome IS NULL, attempt DESC LIMIT 1
"""
_RECORD = "SELECT record FROM call_log WHERE thread_id = ? AND call_id = ?"
_OWNER = "SELECT pid, process_started, place, host, since, renewed_at, lease_s FROM call_owners WHERE owner = ?"
_RENEW = """
INSERT INTO call_owners VALUES (:owner, :pid, :process_started, :place, :host, :since, :renewed_at, :lease_s)
ON CONFLICT (owner) DO UPDATE SET renewed_at = excluded.renewed_at
"""
_THREAD = """
INSERT INTO threads (thread_id, title, created_at, updated_at, next_nodes) VALUES (?, ?, ?, ?, '["tools"]')
ON CONFLICT DO UPDATE SET updated_at = excluded.updated_at, next_nodes = CASE WHEN EXISTS (
    SELECT 1 FROM call_log WHERE thread_id = excluded.thread_id AND status NOT IN ('success', 'error', 'cancelled')
) THEN '["tools"]' ELSE '[]' END
"""
_LOG = """
INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at)
VALUES (:thread_id, :call_id, (SELECT coalesce(max(seq), 0) + 1 FROM call_log WHERE thread_id = :thread_id),
    :tool_name, :status, :risk, :record, '', :at)
ON CONFLICT (thread_id, call_id)
DO UPDATE SET status = excluded.status, record = excluded.record, updated_at = excluded.updated_at
"""
_STOP = """
UPDATE journal SET status = ?, ended_at = ?
WHERE thread_id = ? AND call_id = ? AND attempt = ? AND owner = ? AND status = 'executing'
"""
_DECIDE = """
UPDATE journal SET status = ?, ended_at = ?, outcome = ?
WHERE thread_id = ? AND call_id = ? AND attempt = ? AND outcome IS NULL
"""
_ASK = """
INSERT INTO asked_questions (task, round, call_id, attempt) VALUES (?, ?, ?, ?)
ON CONFLICT (task, round, call_id) DO UPDATE SET attempt = excluded.attempt
"""
_ANSWERED = "INSERT OR IGNORE INTO asked_questions (task, round, call_id, attempt) VALUES (?, ?, '', 0)"
_APPLY = """
UPDATE decisions SET applied_at = ?
WHERE thread_id = ? AND call_id = ? AND superseded_at IS NULL AND applied_at IS NULL
"""
_SERVER_TIME = "SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
_RENEW_LEASES = """
UPDATE leases SET expires_at = clock_timestamp() + make_interval(secs => :lease_s) WHERE owner_token = :owner
"""
"""On a server a lease that is not renewed ends, and commands would no longer show these calls as running."""
_POLL_INTERVAL_S = 0.05
"""How often a waiting worker looks whether the holder of a call has finished."""
_journals: "WeakSet[Journal]" = WeakSet()
_workers: "dict[Path, _Worker]" = {}
"""This process as owner of claims, per file: all `Journal` objects of a file share it."""
_inherited: list[Any] = []
"""Connections of the parent of a fork: closing one here would release the locks of the process that opened it."""


@dataclass(frozen=True, slots=True)
class JournalCall:
    """A call as the journal knows it."""

    thread_id: str
    call_id: str
    tool_name: str
    arguments: Mapping[str, Any]
    """As the model wrote them."""
    is_read_only: bool = False

    def question(self, kind: QuestionKind, attempt: int, reason: str = "") -> Question:
        """The question about an attempt; an answer to it is bound to tool and arguments."""
        digest = args_digest(self.call_id, self.tool_name, attempt, self.arguments)
        return Question(kind, self.call_id, attempt, digest, reason)


@dataclass(frozen=True, slots=True)
class CallEntry:
    """What the journal holds about a call: its finished attempt, else its newest one."""

    record: Mapping[str, Any] = field(default_factory=dict)
    """The `ToolCallInfo` that the commands show; empty for a call that is not known yet."""
    attempt: int = 0
    status: str = ""
    owner: str = ""
    started_at: str = ""
    outcome: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one attempt."""

    call: JournalCall
    attempt: int
    owner: str
    arguments: Mapping[str, Any]
    """What runs: as the model wrote them, or as a person edited them."""


class Journal:
    """The journal in one database. Opened when it is first used; safe in threads, and in the children of a fork."""

    def __init__(self, path: str | Path, *, lease: float = 30.0, wait: float = 10.0) -> None:
        """Name the file, or the server with postgresql://HOST/NAME; tables are created when it is first used.

        Args:
            path: of the file, or the URL (extra `postgres`). The password may also come from libpq's variables.
            lease: seconds after which a worker on another machine, or in another container, counts as dead if it
                has not renewed its claims. On the same machine its process is looked for instead.
            wait: seconds to wait for a live worker that runs the same call, before `CallHeld` is raised.
        """
        server = named_server(path)
        self.path = server or Path(path)
        self._is_on_server = server is not None
        self._lease_s = lease
        self._wait_s = wait
        self._clock = SystemClock()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._server: PostgresDatabase | None = None
        self._worker = _Worker({})
        self._renewed_at = 0.0
        self._heartbeat: threading.Thread | None = None
        self._is_closed = threading.Event()
        _journals.add(self)

    def close(self) -> None:
        """Close the file or the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            if self._server is not None:
                self._server.close_now()
            self._connection = self._server = None
            self._end_heartbeat()

    def after_fork(self) -> None:
        """Forget, in the child of a fork, what belongs to its parent."""
        _inherited.extend((self._connection, self._server))
        self._connection = self._server = self._heartbeat = None
        self._lock, self._is_closed = threading.RLock(), threading.Event()

    def entry(self, call: JournalCall) -> CallEntry:
        """What is known of a call, once no other live worker runs it.

        Raises:
            CallHeld: one still does after the time to wait.
        """
        deadline = time.monotonic() + self._wait_s
        entry = self._work(lambda connection: self._entry(connection, call))
        while entry.status == "executing":
            seen, holder = entry, self._holder(call, entry)
            entry = self._work(lambda connection: self._entry(connection, call))
            if entry != seen:  # Its holder has finished between the two looks.
                continue
            if not holder:
                return entry
            if time.monotonic() >= deadline:
                raise CallHeld(
                    f"Call {call.call_id!r} ({call.tool_name}) of thread {call.thread_id!r} is running in "
                    f"{holder}. Wait for it, or stop that process; then run the graph again."
                )
            time.sleep(_POLL_INTERVAL_S)
        return entry

    def claim(self, call: JournalCall, attempt: int, arguments: Mapping[str, Any]) -> Claim | None:
        """Claim an attempt, durably; None if it was claimed or finished by somebody else meanwhile."""

        def write(connection: Connection) -> Claim | None:
            now = self._clock.now()
            owner = str(self._worker.identity["owner"])
            known = self._entry(connection, call)
            if known.outcome is not None:
                return None
            if not insert_claim(connection, (*_key(call), attempt, owner, now, None)):
                return None
            changes = {"owner_token": owner, "started_at": now, "started": True, "reason": ""}
            self._log(connection, call, "executing", attempt, now, {**changes, "arguments": dict(arguments)})
            if known.record:
                connection.execute(_APPLY, (now, *_key(call)))
            write_lease(connection, storable(call.thread_id), owner, now)
            if self._is_on_server or time.time() - self._renewed_at > self._lease_s / 6:
                self._renew(connection)
            return Claim(call, attempt, owner, arguments)

        with self._lock:
            self._work(lambda _: self._start_heartbeat())
            self._worker.begin(_key(call))  # Before others can see the claim.
            claim = None
            try:
                claim = self._write(write, call.thread_id)
            finally:
                if claim is None:
                    self._worker.end(_key(call))
        return claim

    def finish(self, claim: Claim, outcome: Mapping[str, Any]) -> bool:
        """Record the outcome, once; False if the claim was lost."""
        error = None if outcome["status"] == "success" else outcome["output"]

        def write(connection: Connection) -> bool:
            now = self._clock.now()
            row = (outcome["status"], now, json_text(outcome), *_key(claim.call), claim.attempt, claim.owner)
            if not finish_claim(connection, row):
                return False
            changes = {"ended_at": now, "error_msg": error, "arguments": dict(claim.arguments)}
            self._log(connection, claim.call, outcome["status"], claim.attempt, now, changes)
            return True

        return self._done(claim, write)

    def stop(self, claim: Claim, reason: str, error: str, *, started: bool = True) -> None:
        """Record that the attempt ended without an outcome, and why."""

        def write(connection: Connection) -> bool:
            now = self._clock.now()
            status = "interrupted" if started else "not_started"
            if connection.execute(_STOP, (status, now, *_key(claim.call), claim.attempt, claim.owner)).rowcount:
                changes = {"reason": reason, "ended_at": now, "last_error": error, "started": started}
                self._log(connection, claim.call, "interrupted", claim.attempt, now, changes)
            return True

        self._done(claim, write)

    def decide(
        self, call: JournalCall, attempt: int, outcome: Mapping[str, Any], decision: Mapping[str, Any]
    ) -> bool:
        """Close a call without running it; a worker that still runs the attempt can no longer record its own.

        False, and nothing is recorded, if the attempt (0: there was none) has an outcome by now.
        """

        def write(connection: Connection) -> bool:
            now = self._clock.now()
            values = (outcome["status"], now, json_text(outcome))
            if not connection.execute(_DECIDE, (*values, *_key(call), attempt)).rowcount and attempt:
                return False
            status = decision.get("status", outcome["status"])
            self._log(connection, call, status, max(attempt, 1), now, {"ended_at": now, **decision})
            connection.execute(_APPLY, (now, *_key(call)))
            return True

        return self._write(write, call.thread_id)

    def find_answer(self, call: JournalCall, question: Question) -> Answer | None:
        """The first answer to exactly this question."""
        return self._work(lambda connection: find_answer(connection, call.thread_id, question))

    def ask(self, task: str, number: int, asked: Sequence[tuple[JournalCall, Question]]) -> None:
        """Record what is asked in a round of questions of a task, before anybody sees it."""

        def write(connection: Connection) -> None:
            now = self._clock.now()
            for call, question in asked:
                row = (task, number, call.call_id, question.attempt)
                connection.execute(_ASK, row)
                status = "awaiting_approval" if question.kind == "approval" else "interrupted"
                changes = {"reason": question.reason, "asked_at": now, "args_digest": question.args_digest}
                self._log(connection, call, status, question.attempt, now, changes)

        self._write(write, _thread_of(task))

    def rounds(self, task: str) -> int:
        """How many rounds of questions of a task have been answered."""
        sql = "SELECT count(*) FROM asked_questions WHERE task = ? AND call_id = ''"
        return int(self._work(lambda connection: connection.execute(sql, (task,)).fetchone()[0]))

    def forget_rounds(self, task: str, number: int) -> None:
        """Forget the rounds of a task from this one on."""
        sql = "DELETE FROM asked_questions WHERE task = ? AND round >= ?"
        self._write(lambda connection: connection.execute(sql, (task, number)), _thread_of(task))

    def take_answers(
        self, task: str, number: int, answers: Sequence[tuple[JournalCall, Question, Answer]]
    ) -> list[JournalCall]:
        """Record the answers that a round brought; returns the calls whose question the round did not ask."""

        def write(connection: Connection) -> list[JournalCall]:
            refused = []
            asked = dict(
                connection.execute("SELECT call_id, attempt FROM asked_questions WHERE task = ? AND round = ?", key)
            )
            for call, question, answer in answers:
                if asked.get(call.call_id) == question.attempt:
                    insert_answer(connection, call.thread_id, question, answer)
                else:
                    refused.append(call)
            connection.execute(_ANSWERED, key)
            return refused

        key = (task, number)
        return self._write(write, _thread_of(task))

    def now(self) -> str:
        """The time as the journal writes it."""
        return self._clock.now()

    def _entry(self, connection: Connection, call: JournalCall) -> CallEntry:
        stored = connection.execute(_RECORD, _key(call)).fetchone()
        record = {} if stored is None else load_json(stored[0])
        row = connection.execute(_NEWEST, _key(call)).fetchone()
        if row is None:
            return CallEntry(record)
        attempt, owner, status, started_at, text = row
        return CallEntry(record, attempt, status, owner, started_at, None if text is None else load_json(text))

    def _holder(self, call: JournalCall, entry: CallEntry) -> str:
        """Who runs the call, in words; empty if nobody does any more."""
        if entry.owner == self._worker.identity["owner"]:
            return "this process, in another task or thread" if self._worker.runs(_key(call)) else ""
        row = self._work(lambda connection: connection.execute(_OWNER, (entry.owner,)).fetchone())
        if row is None:
            return ""
        pid, started, place, host, since, renewed_at, lease_s = row
        if place == self._worker.identity["place"]:
            is_alive = process_started(pid) == started
        else:
            is_alive = self._work(self._time) < renewed_at + lease_s
        return f"process {pid} on {host}, which has worked on this journal since {since}" if is_alive else ""

    def _log(
        self,
        connection: Connection,
        call: JournalCall,
        status: str,
        attempt: int,
        now: str,
        changes: Mapping[str, Any],
    ) -> None:
        """Bring the list of calls, and that of threads, up to date."""
        stored = connection.execute(_RECORD, _key(call)).fetchone()
        record: dict[str, Any] = {
            "call_id": call.call_id,
            "tool_name": call.tool_name,
            "requested_arguments": dict(call.arguments),
            "arguments": dict(call.arguments),
            "error_msg": None,
            "risk": "low" if call.is_read_only else "medium",
            "kind": "readonly" if call.is_read_only else "execute",
            **({} if stored is None else load_json(stored[0])),
            "status": status,
            "attempt": attempt,
            **changes,
        }
        if "args_digest" not in changes:
            record["args_digest"] = call.question("recovery", attempt).args_digest
        values = {"tool_name": call.tool_name, "status": status, "risk": record["risk"], "at": now}
        names = dict(zip(("thread_id", "call_id"), _key(call), strict=True))
        connection.execute(_LOG, {**values, **names, "record": json_text(record)})
        title = f"calls of {call.tool_name}"
        connection.execute(_THREAD, (names["thread_id"], title, now, now))

    def _done(self, claim: Claim, write: Callable[[Connection], bool]) -> bool:
        with self._lock:
            try:
                return self._write(write, claim.call.thread_id)
            finally:
                self._worker.end(_key(claim.call))

    def _start_heartbeat(self) -> None:
        if self._heartbeat is None:
            name = f"journal {self.path.name}"
            self._heartbeat = threading.Thread(target=self._beat, args=(self._is_closed,), name=name, daemon=True)
            self._heartbeat.start()

    def _end_heartbeat(self) -> None:
        self._is_closed.set()
        self._is_closed, self._heartbeat = threading.Event(), None

    def _beat(self, is_closed: threading.Event) -> None:
        """Renew the lease while calls run."""
        while not is_closed.wait(self._lease_s / 3):
            # A full disk or a busy file: the next beat may succeed, and the outcome of the call is what reports it.
            with suppress(StorageError):
                if self._worker.running:
                    self._write(self._renew, str(self._worker.identity["owner"]))

    def _renew(self, connection: Connection) -> None:
        self._renewed_at = self._time(connection)
        identity = self._worker.identity
        connection.execute(_RENEW, {**identity, "renewed_at": self._renewed_at})
        if self._is_on_server:
            connection.execute(_RENEW_LEASES, {"owner": identity["owner"], "lease_s": identity["lease_s"]})

    def _time(self, connection: Connection) -> float:
        """Seconds since 1970, on a server by its clock: those of the workers may differ."""
        return float(connection.execute(_SERVER_TIME).fetchone()[0]) if self._is_on_server else time.time()

    def _write(self, work: Callable[[Connection], T], thread_id: str) -> T:
        """Do the work in a transaction; on a server it waits only for other transactions of the same thread."""

        def in_transaction(connection: Connection) -> T:
            server = self._server
            with transaction(connection) if server is None else server.transaction(connection, thread_id=thread_id):
                return work(connection)

        return self._work(in_transaction)

    def _work(self, work: Callable[[Connection], T]) -> T:
        with self._lock:
            if self._is_on_server:
                return self._open_server().work_now(work)
            with self._translated():
                return work(self._open())

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise translate_error(self.path, error) from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = open_connection(self.path)
            connection.executescript(_OWN_TABLES)
            self._join_worker()
            self._connection = connection
        return self._connection

    def _open_server(self) -> "PostgresDatabase":
        if self._server is None:
            server = open_blocking(self.path, _OWN_TABLES)
            self._join_worker()
            self._server = server
        return self._server

    def _join_worker(self) -> None:
        worker = _Worker(_identity(self._clock.now(), self._lease_s))
        self._worker, self._renewed_at = _workers.setdefault(self.path.resolve(), worker), 0.0


class _Worker:
    """This process as the owner of claims in one file, and the calls that it runs."""

    def __init__(self, identity: dict[str, Any]) -> None:
        self.identity = identity
        self.running: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def begin(self, key: tuple[str, str]) -> None:
        """Count a call as running, or about to."""
        with self._lock:
            self.running[key] += 1

    def end(self, key: tuple[str, str]) -> None:
        """No longer count it."""
        with self._lock:
            self.running[key] -= 1
            self.running += Counter()  # Drops what is at 0.

    def runs(self, key: tuple[str, str]) -> bool:
        """Whether it runs."""
        return self.running[key] > 0


def _forget_parent() -> None:
    _workers.clear()
    for journal in list(_journals):
        journal.after_fork()


os.register_at_fork(after_in_child=_forget_parent)


def _key(call: JournalCall) -> tuple[str, str]:
    return storable(call.thread_id), storable(call.call_id)


def _thread_of(task: str) -> str:
    """The thread whose id the name of a task begins with."""
    return task.rpartition("|")[0]


def _identity(since: str, lease_s: float) -> dict[str, Any]:
    """Who this process is; a pid means something only in its place, which is a boot and a namespace of pids."""
    pid, host = os.getpid(), storable(socket.gethostname())
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return {
        "owner": uuid4().hex,
        "pid": pid,
        "process_started": process_started(pid) or "",
        "place": f"{host}|{boot_id()}|{namespace}",
        "host": host,
        "since": since,
        "lease_s": lease_s,
    }
