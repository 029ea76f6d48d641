"""Turns rows into the values of the read store."""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from graph_agent import ports
from graph_agent.config.paths import blob_dir
from graph_agent.errors import DamagedDatabase
from graph_agent.ports.read_store import Attempt, CallRow, StandingAnswer, StoredAnswer, TranscriptEntry
from graph_agent.storage.decoder import Decoder, PlainDecoder
from graph_agent.storage.legacy_names import current_outcome
from graph_agent.storage.sqlite.checkpoint_rows import Link

__all__ = [
    "IMPORTED_OWNER",
    "OWN_INTENT",
    "CheckpointRow",
    "answers_of",
    "attempts_of",
    "calls_of",
    "entry_of",
    "grant_of",
    "intent_of",
    "json_or",
    "load_json",
    "read_foreign_checkpoint",
]

IMPORTED_OWNER = "imported:"
"""Beginning of the owner of an attempt that came from a file."""
OWN_INTENT = f"CASE WHEN owner NOT GLOB '{IMPORTED_OWNER}*' THEN intent END"
"""The change of an attempt that was made here: no file is read or restored because an imported file says so."""

# What every reader relies on, for a record that was stored incompletely.
_REQUIRED: Mapping[str, Any] = {"call_id": "", "tool_name": "", "arguments": {}, "result": None, "error_msg": None}


def grant_of(row: Sequence[Any]) -> "ports.Grant":
    """A saved permission; one of an earlier version has one folder for all its rules."""
    scope, text, *rest = row
    rules = json.loads(text)
    folders = tuple(tuple(map(str, rule["folders"])) for rule in rules if "folders" in rule)
    prefixes = tuple(str(rule["text"]) for rule in rules if rule.get("exact") is False)
    grant = ports.Grant(scope, tuple(str(rule["text"]) for rule in rules), *rest)
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


def calls_of(thread_id: str, calls: str, database: Path) -> list[CallRow]:
    """Calls with their evidence, from the JSON text that statements select."""
    found = []
    for call_id, text, attempts, answers in load_json(calls):
        record = load_json(text)
        if not isinstance(record, dict) or not isinstance(record.get("status"), str):
            raise DamagedDatabase(
                f"The call log holds {text!r:.80} instead of a call: the database was changed by another program."
            )
        whole = {**_REQUIRED, "call_id": call_id, **record}
        found.append(CallRow(thread_id, whole, attempts_of(attempts, database), answers_of(answers)))
    return found


def attempts_of(text: str, database: Path) -> list[Attempt]:
    """Journal rows of a call, from JSON text."""
    return [
        Attempt(number, status, ended_at, _outcome(outcome, database) if outcome else None, started_at)
        for number, status, ended_at, outcome, started_at in load_json(text)
    ]


def _outcome(text: str, database: Path) -> Mapping[str, Any]:
    """The outcome; empty where the file of a large one is gone or damaged."""
    try:
        outcome: Any = json.loads(text)
        if isinstance(outcome, dict) and "blob" in outcome:
            digest = str(outcome["blob"]).removeprefix("blob:sha256:")
            if not digest.isalnum():
                return {}
            content = zlib.decompress((blob_dir(database) / "objects" / digest[:2] / digest[2:]).read_bytes())
            if hashlib.sha256(content).hexdigest() != digest:
                return {}
            outcome = current_outcome(json.loads(content))
    except (OSError, ValueError, zlib.error):
        return {}
    return outcome if isinstance(outcome, dict) else {}


def answers_of(text: str) -> list[StoredAnswer]:
    return [
        StoredAnswer(question, attempt, digest, StandingAnswer(*answer))
        for question, attempt, digest, *answer in load_json(text)
    ]


def entry_of(row: Sequence[Any]) -> TranscriptEntry:
    seq, branch, message_id, role, body, checkpoint_id, at = row
    return TranscriptEntry(seq, branch, message_id, role, load_json(body), checkpoint_id, at)


def intent_of(text: str | None) -> "ports.Intent | None":
    return None if text is None else ports.Intent(**load_json(text))


def load_json(text: str) -> Any:
    if text == "[]":  # The usual case for most calls.
        return []
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedDatabase(
            f"A column that must hold JSON does not ({error}): the database was changed by another program."
        ) from error


def json_or(text: str, default: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return default
