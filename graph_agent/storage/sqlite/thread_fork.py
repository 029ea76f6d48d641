"""Creates a thread from a checkpoint of another one, which is read and never changed.

Copied are the line of checkpoints, the conversation there, and every journal row of a call in it. Answers are
copied as history: none is valid in the new thread, so what is open is asked again. Blobs are shared. The sub-agents
of these calls are copied as they are now.
"""

import json
from typing import Any, NamedTuple

from graph_agent.errors import UnknownId, UsageError
from graph_agent.ports.storage import moved_sub_agent_id
from graph_agent.ports.stored_text import json_text
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.checkpoint_rows import read_checkpoint
from graph_agent.storage.sqlite.projections import Projections, timestamp

__all__ = ["Fork", "fork_thread"]

_ONE = """
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB) FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?
"""
_LINE = """
WITH RECURSIVE line (id) AS (
    SELECT :checkpoint_id UNION SELECT c.parent_checkpoint_id FROM line JOIN checkpoints c
    ON c.thread_id = :source AND c.checkpoint_ns = '' AND c.checkpoint_id = line.id
    WHERE c.parent_checkpoint_id IS NOT NULL
)
"""
_THREAD = """
INSERT INTO threads (thread_id, title, workspace, add_dirs, model, mode, agent, created_at, updated_at,
    parent_thread)
SELECT :target, title, workspace, add_dirs, model, mode, agent, :at, :at, thread_id FROM threads
WHERE thread_id = :source
"""
_CHECKPOINTS = f"""
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
{_LINE} SELECT :target, '', checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
WHERE thread_id = :source AND checkpoint_ns = '' AND checkpoint_id IN (SELECT id FROM line) ORDER BY rowid
"""  # noqa: S608 - names only
# What was written on the checkpoint itself came of the step after it, which is to be taken anew.
_WRITES = f"""
INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
{_LINE} SELECT :target, '', checkpoint_id, task_id, task_path, idx, channel, type, value FROM writes
WHERE thread_id = :source AND checkpoint_ns = '' AND checkpoint_id IN (SELECT id FROM line)
    AND checkpoint_id <> :checkpoint_id ORDER BY rowid
"""  # noqa: S608 - names only
_IMPORTED = f"""
INSERT INTO imported_checkpoints (thread_id, checkpoint_id)
{_LINE} SELECT :target, checkpoint_id FROM imported_checkpoints
WHERE thread_id = :source AND checkpoint_id IN (SELECT id FROM line)
"""  # noqa: S608 - names only
_CUTS = f"""
INSERT INTO prune_points (thread_id, checkpoint_id, branch, seq)
{_LINE} SELECT :target, checkpoint_id, 0, (SELECT count(*) FROM transcript WHERE thread_id = :target)
FROM prune_points WHERE thread_id = :source AND checkpoint_id IN (SELECT id FROM line)
"""  # noqa: S608 - names only
_SHOWN_AT_THE_CUT = f"""
{_LINE} SELECT branch, seq FROM prune_points WHERE thread_id = :source AND checkpoint_id IN (SELECT id FROM line)
ORDER BY seq DESC LIMIT 1
"""  # noqa: S608 - names only
_TRANSCRIPT = """
INSERT INTO transcript (thread_id, seq, branch, message_id, role, body, checkpoint_id, at)
WITH RECURSIVE line (branch, upto) AS (
    SELECT :branch, :seq UNION ALL SELECT b.parent_branch, min(b.from_seq, line.upto)
    FROM line JOIN branches b ON b.thread_id = :source AND b.branch = line.branch
)
SELECT :target, row_number() OVER (ORDER BY t.seq), 0, t.message_id, t.role, t.body, t.checkpoint_id, t.at
FROM transcript t JOIN line ON t.branch = line.branch AND t.seq <= line.upto WHERE t.thread_id = :source
"""
_CALLS = "SELECT value FROM json_each(:calls)"
_CALL_LOG = f"""
INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at)
SELECT :target, call_id, seq, tool_name, status, risk, record, checkpoint_id, updated_at FROM call_log
WHERE thread_id = :source AND call_id IN ({_CALLS})
"""  # noqa: S608 - names only
_FACTS = (
    f"""
INSERT INTO journal (thread_id, call_id, attempt, owner, status, started_at, ended_at, intent, outcome,
    process_group, process_started, boot_id, reverted)
SELECT :target, call_id, attempt, owner, status, started_at, ended_at, intent, outcome,
    process_group, process_started, boot_id, reverted FROM journal
WHERE thread_id = :source AND call_id IN ({_CALLS})
""",  # noqa: S608 - names only
    f"""
INSERT INTO decisions (thread_id, call_id, attempt, question, args_digest, kind, args, reason, by, at, applied_at,
    superseded_at)
SELECT :target, call_id, attempt, question, args_digest, kind, args, reason, by, at, applied_at,
    coalesce(superseded_at, :at) FROM decisions WHERE thread_id = :source AND call_id IN ({_CALLS}) ORDER BY id
""",  # noqa: S608 - names only
    # What the thread saw of a file later is unknown here: it is read again before it is written.
    """
INSERT INTO file_states (thread_id, path, sha256, at)
SELECT :target, path, sha256, at FROM file_states WHERE thread_id = :source AND at <= :then
""",
    """
UPDATE threads SET updated_at = :at, turns = (SELECT count(*) FROM transcript WHERE thread_id = :target
    AND role = 'user') WHERE thread_id = :target
""",
)

_CHILDREN = f"""
SELECT thread_id, parent_call, checkpoint_id, (SELECT coalesce(max(attempt), 0) FROM journal j
    WHERE j.thread_id = c.parent_thread AND j.call_id = c.parent_call)
FROM threads c WHERE parent_thread = :source AND parent_call IN ({_CALLS}) AND checkpoint_id IS NOT NULL
"""  # noqa: S608 - names only
_ADOPT = "UPDATE threads SET parent_thread = ?, parent_call = ? WHERE thread_id = ?"


class Fork(NamedTuple):
    """The thread and checkpoint to fork, and the id and time of the new thread."""

    source: str
    checkpoint_id: str
    target: str
    at: str


def fork_thread(connection: Connection, fork: Fork, projections: Projections) -> None:
    """Create the new thread, within the transaction of the caller.

    Raises:
        UsageError: a thread with its id exists already.
        UnknownId: there is no such checkpoint.
    """
    source, checkpoint_id, target, at = fork
    if connection.execute("SELECT 1 FROM threads WHERE thread_id = ?", (target,)).fetchone():
        raise UsageError(f"Thread {target!r} already exists. Choose another id with --as.")
    row = connection.execute(_ONE, (source, checkpoint_id)).fetchone()
    if row is None:
        raise UnknownId(
            f"Thread {source!r} has no checkpoint {checkpoint_id!r}, or it was pruned. "
            f"`graph-agent history {source}` lists the ones it has."
        )
    origin = read_checkpoint(projections.decoder, source, row)
    named: dict[str, Any] = {**fork._asdict(), "then": timestamp(origin.checkpoint["ts"])}
    for statement in (_THREAD, _CHECKPOINTS, _WRITES, _IMPORTED):
        connection.execute(statement, named)
    shown = connection.execute(_SHOWN_AT_THE_CUT, named).fetchone()
    if shown is not None:
        # What was there before the prune point is in these tables only; the checkpoints bring everything later.
        connection.execute(_TRANSCRIPT, {**named, "branch": shown[0], "seq": shown[1]})
        connection.execute(_CALL_LOG, {**named, "calls": _shown_calls(connection, target)})
        connection.execute(_CUTS, named)
    projections.replay(connection, target)
    named["calls"] = _shown_calls(connection, target)
    for statement in _FACTS:
        connection.execute(statement, named)
    for child, call_id, head, attempts in connection.execute(_CHILDREN, named).fetchall():
        new_child = moved_sub_agent_id(child, call_id, attempts, (source, target))
        if new_child is not None:
            fork_thread(connection, Fork(child, head, new_child, at), projections)
            connection.execute(_ADOPT, (target, call_id, new_child))


def _shown_calls(connection: Connection, thread_id: str) -> str:
    """JSON list of the ids of every call of the messages that the thread shows."""
    rows = connection.execute(
        "SELECT body FROM transcript WHERE thread_id = ? AND role = 'assistant'", (thread_id,)
    )
    return json_text([str(call.get("id")) for (body,) in rows for call in json.loads(body).get("tool_calls") or ()])
