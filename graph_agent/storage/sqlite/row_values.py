"""Turns rows into the values of the read store."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, get_args

from graph_agent import ports
from graph_agent.calls import STATUSES
from graph_agent.errors import DamagedDatabase, StorageError
from graph_agent.ports.read_store import Attempt, CallRow, StandingAnswer, StoredAnswer, TranscriptEntry
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.decoder import Decoder, PlainDecoder
from graph_agent.storage.legacy_names import current_outcome
from graph_agent.storage.sqlite.checkpoint_rows import Link

__all__ = [
    "IMPORTED_OWNER",
    "MODES",
    "OWN_INTENT",
    "CheckpointRow",
    "answers_of",
    "attempts_of",
    "calls_of",
    "damaged_value",
    "entry_of",
    "grant_of",
    "intent_of",
    "json_or",
    "load_json",
    "outcome_of_row",
    "read_foreign_checkpoint",
    "require_valid_attempt",
    "sound_thread_columns",
]

Row = TypeVar("Row", bound=Sequence[Any])

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
"""The permission modes, which policy defines and storage does not import."""
IMPORTED_OWNER = "imported:"
"""Beginning of the owner of an attempt that came from a file."""
OWN_INTENT = f"CASE WHEN substr(owner, 1, {len(IMPORTED_OWNER)}) <> '{IMPORTED_OWNER}' THEN intent END"
"""The change of an attempt that was made here: no file is read or restored because an imported file says so."""

# What every reader relies on, for a record that was stored incompletely.
_REQUIRED: Mapping[str, Any] = {"call_id": "", "tool_name": "", "arguments": {}, "result": None, "error_msg": None}


def grant_of(row: Sequence[Any]) -> "ports.Grant":
    """A saved permission; one of an earlier version has one folder for all its rules."""
    scope, text, *fields = row
    rules = load_json(text)
    if not isinstance(rules, list) or not all(isinstance(rule, dict) and "text" in rule for rule in rules):
        raise damaged_value(f"A saved permission holds {text!r:.60}")
    folders = tuple(tuple(map(str, rule["folders"])) for rule in rules if "folders" in rule)
    prefixes = tuple(str(rule["text"]) for rule in rules if rule.get("exact") is False)
    if scope not in get_args(ports.GrantScope) or fields[-2] not in get_args(ports.GrantEffect):
        raise damaged_value(f"A saved permission has the scope {scope!r:.60} and the effect {fields[-2]!r:.60}")
    grant = ports.Grant(scope, tuple(str(rule["text"]) for rule in rules), *fields)
    return replace(grant, folders=folders, prefixes=prefixes)


class CheckpointRow:
    """A checkpoint that is decoded when it is asked for."""

    def __init__(self, row: Sequence[Any], decode: Callable[[Sequence[Any]], Link]) -> None:
        self.id: str = row[0]
        self.parent_id: str | None = row[1]
        self._row = row
        self._decode = decode

    @cached_property
    def _link(self) -> Link:
        return self._decode(self._row)

    @property
    def checkpoint(self) -> dict[str, Any]:
        return self._link.checkpoint

    @property
    def metadata(self) -> dict[str, Any]:
        return self._link.metadata


def read_foreign_checkpoint(decoder: Decoder, _thread_id: str, row: Sequence[Any]) -> Link:
    """A checkpoint that another program stored, in whatever form.

    Raises:
        DamagedDatabase: it cannot be decoded, or is none.
    """
    checkpoint_id, parent_id, kind, content, metadata = row
    checkpoint = decoder.checkpoint(kind, content)
    return Link(checkpoint_id, parent_id, checkpoint, PlainDecoder().metadata(metadata), None)


_NULLABLE = ("checkpoint_id", "parent_thread", "parent_call")


def sound_thread_columns(columns: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The columns of a list entry, each of its kind, and whether one was damaged: then it is empty."""
    whole: dict[str, Any] = {}
    for name, value in columns.items():
        kind = int if name == "turns" else str
        is_sound = isinstance(value, kind) or (value is None and name in _NULLABLE)
        whole[name] = value if is_sound else None if name in _NULLABLE else kind()
    return whole, whole != dict(columns)


def calls_of(thread_id: str, calls: str, blobs: FileBlobs) -> list[CallRow]:
    """Calls with their evidence, from the JSON text that statements select."""
    found = []
    for call_id, text, attempts, answers in load_json(calls):
        record = load_json(text)
        if not isinstance(record, dict) or not _has_call_shape(record):
            raise damaged_value(f"The call log of thread {thread_id} holds {text!r:.80} instead of a call")
        whole = {**_REQUIRED, "call_id": call_id, **record}
        found.append(CallRow(thread_id, whole, attempts_of(attempts, blobs), answers_of(answers)))
    return found


def _has_call_shape(record: Mapping[str, Any]) -> bool:
    texts = ("status", "tool_name")
    return (
        record.get("status") in STATUSES
        and all(isinstance(record.get(name, ""), str) for name in texts)
        and isinstance(record.get("arguments", {}), dict)
        and isinstance(record.get("attempt", 1), int)
    )


def attempts_of(text: str, blobs: FileBlobs) -> list[Attempt]:
    """Journal rows of a call, from JSON text."""
    return [
        Attempt(number, status, ended_at, _outcome(outcome, blobs) if outcome else None, started_at)
        for number, status, ended_at, outcome, started_at in load_json(text)
    ]


def _outcome(text: str, blobs: FileBlobs) -> Mapping[str, Any]:
    """The outcome; empty where the content of a large one is gone or damaged."""
    try:
        outcome: Any = json.loads(text)
        if isinstance(outcome, dict) and "blob" in outcome:
            outcome = current_outcome(json.loads(blobs.get(str(outcome["blob"]))))
    except (StorageError, ValueError):
        return {}
    return outcome if isinstance(outcome, dict) else {}


def answers_of(text: str) -> list[StoredAnswer]:
    return [
        StoredAnswer(question, attempt, digest, StandingAnswer(*answer))
        for question, attempt, digest, *answer in load_json(text)
    ]


def entry_of(row: Sequence[Any]) -> TranscriptEntry:
    seq, branch, message_id, role, text, checkpoint_id, at = row
    body = load_json(text)
    if not (isinstance(body, dict) and all(isinstance(one, str) for one in (message_id, role, checkpoint_id, at))):
        raise damaged_value(f"Message {seq} of a transcript holds {body!r:.40}")
    return TranscriptEntry(seq, branch, message_id, role, body, checkpoint_id, at)


def intent_of(text: str | None) -> "ports.Intent | None":
    """The intended change of an attempt.

    Raises:
        DamagedDatabase: the column holds something else.
    """
    if text is None:
        return None
    try:
        return ports.Intent(**load_json(text))
    except TypeError as error:
        raise damaged_value(f"The journal holds {text!r:.60} as the intended change of a call") from error


def outcome_of_row(outcome: Any) -> "ports.Outcome | None":
    """The outcome of an attempt.

    Raises:
        DamagedDatabase: it is none.
    """
    if outcome is None:
        return None
    try:
        return ports.Outcome(**outcome)
    except TypeError as error:
        raise damaged_value(f"The journal holds {outcome!r:.60} as the outcome of a call") from error


def damaged_value(what: str) -> DamagedDatabase:
    """The error about a value that is never stored; a sentence about it goes before the remedy."""
    return DamagedDatabase(
        f"{what}: the database is damaged. `graph-agent doctor` names the thread and the row; "
        "`graph-agent doctor --repair` keeps a copy and recovers what it can."
    )


def load_json(text: str, kind: type | None = None) -> Any:
    """The value of a JSON column, of this kind if one is given.

    Raises:
        DamagedDatabase: the column holds something else.
    """
    if text == "[]" and kind is not dict:  # The usual case for most calls.
        return []
    try:
        value = _decode_json(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged_value(f"A column that must hold JSON does not ({error})") from error
    if kind is not None and not isinstance(value, kind):
        raise damaged_value(f"A column that must hold a JSON {_JSON_KINDS[kind]} holds {value!r:.60}")
    return value


_decode_json = json.JSONDecoder(strict=False).decode
"""A server gives a NUL as itself. `json.loads` would make a decoder for each text."""
_JSON_KINDS: Mapping[type, str] = {dict: "object", list: "array"}


def require_valid_attempt(columns: Row) -> Row:
    """The columns of a journal row: call id, attempt, and others that are text or NULL.

    Raises:
        DamagedDatabase: one is something else.
    """
    call_id, number, *others = columns
    if not (isinstance(number, int) and all(one is None or isinstance(one, str) for one in (call_id, *others))):
        raise damaged_value(f"The journal of call {call_id!r:.60} holds {(number, *others)!r:.120}")
    return columns


def json_or(text: str, default: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return default
