"""The names that earlier versions stored, turned into today's. No other module knows them.

Checkpoints and their writes are renamed when they are decoded; rows of tables when a database is migrated, when
an older database is read without migrating it, and when an exported thread is imported.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from graph_agent.ports.stored_text import json_text

__all__ = [
    "COLUMNS",
    "CONTENTS",
    "TABLES",
    "current_channel",
    "current_checkpoint",
    "current_interrupt",
    "current_outcome",
    "current_row",
    "current_task_input",
    "current_value",
]


def _pairs(text: str) -> dict[str, str]:
    """Today's name by the former one, from `former=today` words."""
    return dict(pair.split("=") for pair in text.split())


TABLES: Mapping[str, str] = _pairs(
    "ledger=call_log cuts=prune_points pruned=pruned_checkpoints imported=imported_checkpoints "
    "shells=background_shells searched=search_entries unsearched=search_removals words=search_index"
)
"""Tables by their names before schema version 13."""
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "threads": _pairs("asks=model_choice"),
    "call_log": _pairs("left_behind=abandoned"),
    "journal": _pairs("undone=reverted"),
    "decisions": _pairs("outside=outside_sandbox"),
    "leases": _pairs("life=owner_token"),
    "grants": _pairs("place=folder"),
}
"""Columns of each table by their names before schema version 13."""

_OVERWRITE = "langgraph.types.Overwrite"
_RECORD = _pairs(
    "remark=hook_feedback wants_answer=requires_input goes_on=resumable digest=args_digest run_token=owner_token "
    "begun=started display=summary left_behind=abandoned"
)
_PREVIEW = _pairs("seen=observed")
_TURN = _pairs("strikes=consecutive_failures why=reason below=sub_agent_requests afresh=budget_reset")
_FAILURES = _pairs("refusals=rejections")
_CONTEXT = _pairs("learned=learned_limits")
_LIMITS = _pairs("refused=refused_tokens is_sure=is_confirmed named=stated_limit said=configured_tokens")
_ANSWER = _pairs("digest=args_digest outside=outside_sandbox token=owner_token who=decided_by")
_TASK_INPUT = _pairs("of_calls=calls_in_message")
_OUTCOME = _pairs("display=summary")
_PLAN = _pairs("undoes=reverts")
_PLANNED_FILE = _pairs("now=current then=target")
_REWIND_STATUS = _pairs("undone=reverted undoing=reverting")
_SHELL_ENDING = _pairs("why=reason trouble=error")
_SHELL_REASON = _pairs(
    "own=exited flood=output_limit found=found_dead unseen=exited_unobserved walls=sandbox_failed"
)
_CHANNEL_NAMES = _pairs("told_shells=reported_shells")


def current_checkpoint(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """A decoded checkpoint with today's channels and fields."""
    renamed = dict(checkpoint)
    if isinstance(values := checkpoint.get("channel_values"), dict):
        renamed["channel_values"] = _values(values)
    if isinstance(versions := checkpoint.get("channel_versions"), dict):
        renamed["channel_versions"] = _renamed(versions, _CHANNEL_NAMES)
    if isinstance(seen := checkpoint.get("versions_seen"), dict):
        renamed["versions_seen"] = {node: _renamed(one, _CHANNEL_NAMES) for node, one in seen.items()}
    if isinstance(updated := checkpoint.get("updated_channels"), list):
        renamed["updated_channels"] = [current_channel(name) for name in updated]
    return renamed


def current_channel(name: str) -> str:
    """Today's name of a channel."""
    return _CHANNEL_NAMES.get(name, name)


def current_value(channel: str, value: Any) -> Any:
    """A decoded value of a channel, or a write to it, with today's fields."""
    rename = _CHANNELS.get(channel)
    if rename is None or value is None:
        return value
    if isinstance(value, dict):
        if value.get("__type__") == _OVERWRITE:
            return {**value, "value": rename(value.get("value"))}
        return rename(value)
    if isinstance(value, list):
        return [rename(one) for one in value]
    # A snapshot, or an overwrite: the value in its wrapper.
    return type(value)(rename(value.value)) if hasattr(value, "value") else value


def current_interrupt(value: Any) -> Any:
    """What an interrupt asks, with today's fields."""
    if not isinstance(value, dict):
        return value
    return {
        name: [_renamed(item, _ANSWER) for item in one] if name in ("approve", "recover") else one
        for name, one in value.items()
    }


def current_task_input(value: Any) -> Any:
    """What a task is sent, with today's fields."""
    return _renamed(value, _TASK_INPUT, call=_record)


def current_outcome(outcome: Any) -> Any:
    """The outcome of a call, as the journal or a blob holds it, with today's fields."""
    return _renamed(outcome, _OUTCOME)


def current_row(table: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Today's table and columns of a row that was exported before they were renamed; the contents stay."""
    today = TABLES.get(table, table)
    return today, _renamed(dict(values), COLUMNS.get(today, {}))


def _renamed(value: Any, names: Mapping[str, str], **parts: Callable[[Any], Any]) -> Any:
    """A mapping with today's names, and the parts that are there renamed in turn; anything else as it is."""
    if not isinstance(value, dict):
        return value
    renamed = value if names.keys().isdisjoint(value) else {names.get(key, key): one for key, one in value.items()}
    there = {name: rename(renamed[name]) for name, rename in parts.items() if name in renamed}
    return {**renamed, **there} if there else renamed


def _record(record: Any) -> Any:
    """A whole or partial record of a call."""
    return _renamed(record, _RECORD, preview=partial(_renamed, names=_PREVIEW))


def _calls(calls: Any) -> Any:
    return {call_id: _record(one) for call_id, one in calls.items()} if isinstance(calls, dict) else calls


def _turn(turn: Any) -> Any:
    return _renamed(turn, _TURN, consecutive_failures=lambda one: _renamed(one, _FAILURES), compact_only=_turn)


def _context(context: Any) -> Any:
    return _renamed(context, _CONTEXT, learned_limits=lambda limits: _renamed(limits, _LIMITS))


def _envelope(envelope: Any) -> Any:
    if isinstance(envelope, list):
        return [_envelope(one) for one in envelope]
    if not isinstance(envelope, dict) or not isinstance(answers := envelope.get("answers"), dict):
        return envelope
    return {**envelope, "answers": {call_id: _renamed(one, _ANSWER) for call_id, one in answers.items()}}


def _values(values: Any) -> Any:
    if not isinstance(values, dict):
        return values
    named = ((current_channel(name), value) for name, value in values.items())
    return {name: current_value(name, value) for name, value in named}


def _plan(plan: Any) -> Any:
    return _renamed(
        plan,
        _PLAN,
        files=lambda files: [_renamed(one, _PLANNED_FILE) for one in files] if isinstance(files, list) else files,
    )


def _shell_ending(ending: Any) -> Any:
    renamed = _renamed(ending, _SHELL_ENDING)
    if not isinstance(renamed, dict):
        return renamed
    reason = str(renamed.get("reason"))
    return {**renamed, "reason": _SHELL_REASON.get(reason, reason)}


def _json(rename: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same for a column of JSON text; text that is no JSON stays as it is."""

    def rename_text(text: Any) -> Any:
        try:
            value = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            return text
        renamed = rename(value)
        return text if renamed == value else json_text(renamed)

    return rename_text


_CHANNELS: Mapping[str, Callable[[Any], Any]] = {
    "calls": _calls,
    "turn": _turn,
    "context": _context,
    "__start__": _values,
    "__resume__": _envelope,
}
CONTENTS: Mapping[tuple[str, str], Callable[[Any], Any]] = {
    ("call_log", "record"): _json(_record),
    ("journal", "outcome"): _json(current_outcome),
    ("rewinds", "plan"): _json(_plan),
    ("rewinds", "status"): lambda status: _REWIND_STATUS.get(status, status),
    ("background_shells", "ending"): _json(_shell_ending),
    ("writes", "channel"): current_channel,
}
"""What to make of the contents of a column, by today's table and column."""
