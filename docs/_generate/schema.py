"""Renders docs/events.schema.json: what each line of `run --output stream-json` looks like, for programs."""

import json
from typing import Any, get_args

from pydantic import TypeAdapter

from graph_agent.events import Event, LiveState
from graph_agent.session.turn_result import TurnStatus

__all__ = ["schema"]

_NUMBER = {"type": "integer", "minimum": 1, "description": "1, 2, 3 ... without gaps"}
_OF_CALLS = ("tool_call_delta", "tool_call", "tool_call_started", "tool_call_progress", "tool_result")


def schema() -> str:
    """The whole file, as it should stand on disk."""
    kinds = [TypeAdapter(kind).json_schema() for kind in get_args(Event)]
    lines = [_numbered(kind) for kind in kinds]
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `graph-agent run --output stream-json`",
        "oneOf": [*lines, _result(), _input_error()],
    }
    return json.dumps(whole, indent=2, sort_keys=True) + "\n"


def _numbered(kind: dict[str, Any]) -> dict[str, Any]:
    properties = {"seq": _NUMBER, **kind["properties"]}
    if kind["properties"]["type"]["const"] in _OF_CALLS:
        properties["state"] = {"enum": list(get_args(LiveState)), "description": "Where the call stands now."}
    return {**kind, "properties": properties, "required": sorted(properties), "additionalProperties": False}


def _result() -> dict[str, Any]:
    calls = {"type": "array", "items": {"type": "object", "required": ["call_id", "thread_id", "tool_name"]}}
    text_or_null = {"type": ["string", "null"]}
    properties = {
        "seq": _NUMBER,
        "type": {"const": "result"},
        "status": {"enum": list(get_args(TurnStatus))},
        "thread_id": text_or_null,
        "checkpoint_id": text_or_null,
        "answer": {"type": "string"},
        "pending_approvals": calls,
        "interrupted_calls": calls,
        "usage": {"type": "object"},
        "error": text_or_null,
    }
    structured = {"description": "With --json-schema: the value of the answer, null if it does not fit."}
    return {
        "title": "result",
        "description": "The last line; the same object as `--output json` prints.",
        "type": "object",
        "properties": {**properties, "structured": structured},
        "required": sorted(properties),
        "additionalProperties": False,
    }


def _input_error() -> dict[str, Any]:
    properties = {"seq": _NUMBER, "type": {"const": "input_error"}, "line": _NUMBER, "error": {"type": "string"}}
    return {
        "title": "input_error",
        "description": "With --input-format stream-json: a line of stdin that was not used.",
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }
