"""One call as models write it into text: as a JSON object, or as tags. Knows no reply around it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graph_agent.model.arguments import Arguments, read_arguments

__all__ = ["MARK", "Form", "WrittenCall", "in_json", "in_tags", "named_json", "offered_as"]

_NAMES = ("name", "tool_name", "tool", "function", "function_name", "action", "recipient_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "params", "kwargs")
_LISTS = ("tool_calls", "tool_uses", "calls")

_NAME_IN_BROKEN = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([^"\\]{1,64})"')

MARK = r"(?:[｜|]+\s*\w+\s*[｜|]+|antml:)?"
"""What some models put before the names of their tags."""

_INVOKED = re.compile(
    rf"<{MARK}(?:invoke|function)(?:\s+name\s*=\s*|=)\"?([^\">\s]{{1,80}})\"?\s*>(.*?)"
    rf"(?:</{MARK}(?:invoke|function)>|(?=<{MARK}(?:invoke|function)[ =])|\Z)",
    re.DOTALL,
)
"""`<invoke name="x">`, as it stands or marked as DeepSeek does, and `<function=x>`."""
_PARAMETER = re.compile(
    rf"<{MARK}parameter(?:\s+name\s*=\s*|=)\"?([^\">\s]{{1,80}})\"?([^>]*)>(.*?)</{MARK}parameter>", re.DOTALL
)
_OPENED_PARAMETER = re.compile(rf"<{MARK}parameter\b")
_ENDED_PARAMETER = re.compile(rf"</{MARK}parameter>")
_HALF_KEYED = re.compile(r"</?arg_(?:key|value)\b")
_AROUND_NAME = re.compile(r"\A(?:functions\.)?(.*?)(?::\d+|<\|.*)?\Z", re.DOTALL)
"""What models leave standing around a name: the namespace, the number of the call, a token of their own format."""
_KEYED = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)

_NAMED = re.compile(r"\s*([\w.-]{1,80})(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*(?=\{)")

_NO_END = "the call has no end; send the whole of it again"

_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call that stood in the text."""

    name: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Form:
    """What one piece of text came to."""

    calls: tuple[WrittenCall, ...] = ()
    end: int = 0
    """How far into the text it reached."""


def in_json(text: str) -> Form:
    """The calls of the JSON values that the text begins with; one that is broken is a call with a complaint."""
    calls: list[WrittenCall] = []
    position = 0
    while found := re.compile(r"[\s,;]*(?=[\[{])").match(text, position):
        try:
            value, position = _DECODER.raw_decode(text, found.end())
        except (ValueError, RecursionError) as error:
            broken = _broken(text[found.end() :], error)
            return Form((*calls, *broken), len(text) if broken else position)
        calls += _calls_of(value)
    return Form(tuple(calls), position)


def in_tags(text: str) -> tuple[WrittenCall, ...]:
    """The calls written as tags within the text."""
    invoked = tuple(WrittenCall(match[1], _tagged_arguments(match)) for match in _INVOKED.finditer(text))
    keyed = _KEYED.findall(text)
    if invoked or not keyed:
        return invoked
    name = text.strip().split("\n", 1)[0].split("<", 1)[0].strip()
    if _HALF_KEYED.search(_KEYED.sub("", text)):
        return (WrittenCall(name, Arguments(complaint=_NO_END)),)
    return (WrittenCall(name, Arguments({key.strip(): value for key, value in keyed})),)


def named_json(text: str) -> tuple[WrittenCall, ...]:
    """Calls of which each is a name with its arguments behind it, `ls{"path": "."}`."""
    calls: list[WrittenCall] = []
    position = 0
    while named := _NAMED.match(text, position):
        try:
            value, position = _DECODER.raw_decode(text, named.end())
            calls.append(WrittenCall(named[1], read_arguments(value)))
        except (ValueError, RecursionError):
            calls.append(WrittenCall(named[1], read_arguments(text[named.end() :])))
            break
    return tuple(calls)


def offered_as(name: str, offered: Sequence[str]) -> str | None:
    """The tool on offer that is meant, however it is spelled and marked; None where there is no telling."""
    bare = name.strip()
    for told in (bare, _AROUND_NAME.sub(r"\1", bare)):
        same = [known for known in offered if known.casefold() == told.casefold()]
        if told in offered or len(same) == 1:
            return told if told in offered else same[0]
    return None


def _calls_of(value: Any) -> list[WrittenCall]:
    if isinstance(value, list):
        return [call for item in value for call in _calls_of(item)]
    if not isinstance(value, Mapping):
        return []
    for key in _LISTS:
        if isinstance(value.get(key), list):
            return _calls_of(value[key])
    if isinstance(inner := value.get("function"), Mapping):
        return _calls_of(inner)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if name is None:
        return _unnamed(value)
    is_call = given is not None or len(value) == 1 or "arguments" in value
    return [WrittenCall(name.removeprefix("functions."), read_arguments(given))] if is_call else []


def _unnamed(value: Mapping[str, Any]) -> list[WrittenCall]:
    """What was meant as a call and lacks a name that is a text: the model is told, where nothing else was meant."""
    if not any(key in value for key in _ARGUMENTS) or not any(key in value for key in _NAMES):
        return []
    named = next(value[key] for key in _NAMES if key in value)
    told = f"the name of the tool must be a text, not {json.dumps(named)[:64]}; send the call again with its name"
    return [WrittenCall("", Arguments(complaint=told))]


def _broken(text: str, error: Exception) -> tuple[WrittenCall, ...]:
    named = _NAME_IN_BROKEN.search(text)
    if named is None:
        return ()
    told = f"the call is not valid JSON ({error}); send it again as one JSON object with name and arguments"
    return (WrittenCall(named[1], Arguments(complaint=told)),)


def _tagged_arguments(call: re.Match[str]) -> Arguments:
    body = call[2].strip()
    if body.startswith("{"):
        return read_arguments(body)
    is_whole = call.end() < len(call.string) or call[0].endswith(">")
    around = _PARAMETER.sub("", body)
    if not is_whole or _OPENED_PARAMETER.search(around):
        return Arguments(complaint=_NO_END)
    if _ENDED_PARAMETER.search(around):
        return Arguments(complaint="where a parameter ends cannot be told; send the call as one JSON object")
    return read_arguments({match[1]: _value(match[2], match[3]) for match in _PARAMETER.finditer(body)})


def _value(attributes: str, text: str) -> Any:
    """A value between tags: JSON only where the tag says that it is no text; tools read numbers from texts."""
    bare = text.removeprefix("\n").removesuffix("\n")
    if 'string="false"' not in attributes:
        return bare
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return bare
