"""What a strict provider refuses: the first thing wrong with a request's history, in words."""

import json
from typing import Any

__all__ = ["history_fault"]


def history_fault(raw: bytes) -> str | None:
    """Why a strict server answers this request body with 400; None when nothing is wrong."""
    try:
        body = json.loads(raw.decode("utf-8"))
    except ValueError as error:
        return f"the body is not valid UTF-8 JSON: {error}"
    if _has_surrogate(body):
        return "the body holds a lone surrogate"
    return _fault_in(body.get("messages") or [])


def _fault_in(messages: list[dict[str, Any]]) -> str | None:
    seen: set[str] = set()
    expected: list[str] = []
    for position, message in enumerate(messages):
        where = f"messages[{position}]"
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in expected:
                return f"{where}: tool message {message.get('tool_call_id')!r} lacks its call just before"
            expected.remove(message["tool_call_id"])
            continue
        if expected:
            return f"{where}: calls {expected} have no tool message"
        if message.get("role") == "assistant":
            calls = message.get("tool_calls") or []
            if fault := _assistant_fault(message, calls, seen):
                return f"{where}: {fault}"
            expected = [call["id"] for call in calls]
    return f"calls {expected} have no tool message" if expected else None


def _assistant_fault(message: dict[str, Any], calls: list[dict[str, Any]], seen: set[str]) -> str | None:
    if not calls and not message.get("content"):
        return "assistant message with neither text nor calls"
    for call in calls:
        call_id = call.get("id")
        if not call_id or call_id in seen:
            return f"call id {call_id!r} is empty or used before"
        seen.add(call_id)
        if not _is_object(call["function"].get("arguments")):
            return f"arguments of {call_id!r} do not decode to an object: {call['function'].get('arguments')!r}"
    return None


def _is_object(arguments: Any) -> bool:
    try:
        return isinstance(arguments, str) and isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def _has_surrogate(value: Any) -> bool:
    text = json.dumps(value, ensure_ascii=False)
    return any("\ud800" <= char <= "\udfff" for char in text)
