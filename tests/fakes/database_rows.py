"""A database file filled row by row, to show the reader situations that take a crash to come about."""

import json
import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

from graph_agent.ports.background import boot_id, process_started
from graph_agent.storage.sqlite.database_file import APPLICATION_ID
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION, load_migrations

__all__ = ["START", "Rows", "record_of"]

START = "2026-11-28T10:00:00.000Z"


class Rows:
    """Writes rows as the store does, through a connection that stays open like that of a running process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        for migration in load_migrations():
            self._connection.executescript(migration.sql)
        self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def close(self) -> None:
        self._connection.close()

    def execute(self, sql: str, *parameters: Any) -> None:
        self._connection.execute(sql, parameters)

    def thread(self, thread_id: str = "t1", *, next_nodes: tuple[str, ...] = (), **columns: Any) -> None:
        self._insert(
            "threads",
            {
                "thread_id": thread_id,
                "created_at": START,
                "updated_at": START,
                "next_nodes": json.dumps(next_nodes),
                **columns,
            },
        )

    def call(self, record: dict[str, Any], thread_id: str = "t1") -> None:
        [(count,)] = self._connection.execute("SELECT count(*) FROM call_log WHERE thread_id = ?", (thread_id,))
        self._insert(
            "call_log",
            {
                "thread_id": thread_id,
                "call_id": record["call_id"],
                "seq": count + 1,
                "tool_name": record["tool_name"],
                "status": record["status"],
                "risk": record.get("risk", ""),
                "record": json.dumps(record),
                "checkpoint_id": "c1",
                "updated_at": START,
            },
        )

    def journal(self, status: str, outcome: dict[str, Any] | None = None, **columns: Any) -> None:
        self._insert(
            "journal",
            {
                "thread_id": "t1",
                "call_id": "call_a",
                "attempt": 1,
                "owner": "run 1",
                "status": status,
                "started_at": START,
                "ended_at": START if outcome else None,
                "outcome": json.dumps(outcome) if outcome else None,
                **columns,
            },
        )

    def decision(self, kind: str, question: str = "approval", **columns: Any) -> None:
        self._insert(
            "decisions",
            {
                "thread_id": "t1",
                "call_id": "call_a",
                "attempt": 1,
                "question": question,
                "args_digest": "d1",
                "kind": kind,
                "by": "cli pid 7",
                "at": START,
                **columns,
            },
        )

    def grant(self, *rules: str, **columns: Any) -> None:
        self._insert(
            "grants",
            {
                "scope": "thread",
                "rules": json.dumps([{"text": rule, "exact": True} for rule in rules]),
                "mode": "default",
                "thread_id": "t1",
                "workspace": "/w",
                "call_id": "call_a",
                "by": "cli pid 7",
                "at": START,
                **columns,
            },
        )

    def message(self, role: str, body: dict[str, Any], thread_id: str = "t1") -> None:
        [(count,)] = self._connection.execute("SELECT count(*) FROM transcript WHERE thread_id = ?", (thread_id,))
        self._insert(
            "transcript",
            {
                "thread_id": thread_id,
                "seq": count + 1,
                "message_id": f"m{count + 1}",
                "role": role,
                "body": json.dumps(body),
                "checkpoint_id": "c1",
                "at": START,
            },
        )

    def lease(self, thread_id: str = "t1", *, pid: int | None = None, **columns: Any) -> None:
        """Held by this very process, unless said otherwise."""
        self._insert(
            "leases",
            {
                "thread_id": thread_id,
                "owner_token": "run 1",
                "pid": os.getpid() if pid is None else pid,
                "process_started": process_started(os.getpid()),
                "boot_id": boot_id(),
                "host": socket.gethostname(),
                "since": START,
                **columns,
            },
        )

    def task(self, task_id: str = "task1", *, state: str = "queued", **columns: Any) -> None:
        """A task; its thread is that of `thread` unless named."""
        given = {
            "thread_id": "t1",
            "prompt": "tidy up",
            "workspace": "/w",
            "options": '{"flags": {}}',
            "branch": "",
            "every": 0,
        }
        times = {"not_before": START, "added_at": START, "added_by": "pid 1"}
        self._insert("tasks", {"task_id": task_id, "state": state, **given, **times, **columns})

    def _insert(self, table: str, columns: dict[str, Any]) -> None:
        names, places = ", ".join(columns), ", ".join("?" for _ in columns)
        self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", tuple(columns.values()))  # noqa: S608 - names of our own columns


def record_of(status: str, call_id: str = "call_a", **fields: Any) -> dict[str, Any]:
    """A ledger record."""
    return {
        "call_id": call_id,
        "tool_name": "bash",
        "arguments": {"command": "make"},
        "status": status,
        "result": None,
        "error_msg": None,
        "attempt": 1,
        "risk": "medium",
        "args_digest": "d1",
        **fields,
    }
