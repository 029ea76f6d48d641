"""Puts the calls of a reply together from the fragments that servers send. Knows no transport and no tool.

Servers disagree on how a fragment says which call it belongs to: `index` may be missing, null, or the same for all
calls; ids may be missing, repeated in each fragment, or reused for another call; names may be repeated, come in
pieces, or grow from fragment to fragment.

Reads the arguments of a call as models really send them. Knows no tool and no stream.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

__all__ = ["Arguments", "CallParts", "Fragments", "read_arguments", "repaired"]

_MAX_WRAPPINGS = 3
"""How often an object may be encoded into a string of itself."""

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)

_MARKERS = re.compile(r"(?:\s*(?:<[|｜][^<>|｜]{1,40}[|｜]>|</\w{1,40}>))+\s*\Z")
"""Tokens that end a call in a model's own format, left standing by servers that should have taken them away."""

_INT64 = range(-(2**63), 2**64)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Decoded arguments; `{}` with a complaint where they cannot be used."""

    value: dict[str, Any] = field(default_factory=dict)
    complaint: str = ""
    """Why they cannot be used, in words for the model; empty when they can."""


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


def read_arguments(raw: Any) -> Arguments:
    """Arguments that arrive as text, as text of text, as an object, or not at all (which is no arguments)."""
    for _ in range(_MAX_WRAPPINGS):
        if isinstance(raw, dict):
            return _checked(raw)
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            return Arguments()
        if not isinstance(raw, str):
            break
        try:
            raw = _decoded(raw)
        except (ValueError, RecursionError) as error:
            return Arguments(complaint=f"the arguments are not valid JSON ({error}); send one JSON object")
    if isinstance(raw, dict):
        return _checked(raw)
    return Arguments(complaint=f"the arguments are {_kind(raw)}, not a JSON object; send one JSON object")


def repaired(text: str) -> str:
    """The text with surrogate halves joined, and single ones replaced: UTF-8 has no place for them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decoded(text: str) -> Any:
    """The one value of the text. Servers put an empty object before the real one, and send the whole once more."""
    fenced = _FENCED.fullmatch(text)
    told = _MARKERS.sub("", fenced[1] if fenced else text)
    try:
        return _DECODER.decode(told)
    except json.JSONDecodeError:
        values = _values(told)
        if not values or any(value != values[0] for value in values):
            raise
        return values[0]


def _values(text: str) -> list[Any]:
    """What values follow one another, empty objects left out; none where what follows is no value."""
    values: list[Any] = []
    while text := text.strip():
        try:
            value, end = _DECODER.raw_decode(text)
        except json.JSONDecodeError:
            return []
        values.append(value)
        text = text[end:]
    return [value for value in values if value != {}]


def _checked(value: dict[str, Any]) -> Arguments:
    try:
        return Arguments({repaired(key): _storable(item) for key, item in value.items()})
    except (ValueError, RecursionError) as error:
        return Arguments(complaint=f"the arguments cannot be taken: {error}")


def _storable(value: Any) -> Any:
    match value:
        case str():
            return repaired(value)
        case bool():
            return value
        case int() if value not in _INT64:
            raise ValueError(f"the number {str(value)[:40]} does not fit into 64 bits")
        case float() if value in (float("inf"), float("-inf")):
            raise ValueError("a number is too large")
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {repaired(key): _storable(item) for key, item in value.items()}
        case _:
            return value


def _kind(value: Any) -> str:
    match value:
        case list():
            return "a list"
        case str():
            return "a string within strings"
        case bool():
            return "true or false"
        case _:
            return "a number"


_MOST_DIGITS = 12
_ENDS = ("}", "]", '"', "null")
"""How a JSON value ends that may be arguments; asked first, because reading all of them for each piece is slow."""


@dataclass(slots=True, eq=False)
class CallParts:
    """One call as far as it has arrived."""

    index: int | None
    """What the server calls its position."""
    call_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    """What the server wants to see again with this call, unread (`extra_content`)."""

    @property
    def arguments(self) -> str:
        """All that came, one piece behind the other."""
        return "".join(self.pieces)

    def whole_arguments(self) -> str:
        """The arguments; where each piece began with all before it, the last one says everything."""
        told = [piece for piece in self.pieces if piece]
        grows = len(told) > 1 and all(later.startswith(piece) for piece, later in pairwise(told))
        return told[-1] if grows and not self.is_complete() else self.arguments

    def is_complete(self) -> bool:
        """Whether the arguments are a whole JSON value: what follows cannot belong to them."""
        newest = next((piece for piece in reversed(self.pieces) if piece.strip()), "")
        if not newest.rstrip().endswith(_ENDS):
            return False
        try:
            json.loads(self.arguments, strict=False)
        except (ValueError, RecursionError):
            return False
        return True


class Fragments:
    """The calls of one reply, in order of arrival."""

    def __init__(self) -> None:
        self.calls: list[CallParts] = []

    def add(self, fragment: Any) -> tuple[int, str, str] | None:
        """Take a streamed fragment in; gives the call's position, its name so far, and the new arguments text."""
        if not isinstance(fragment, Mapping):
            return None
        index, call_id, name, piece = _read(fragment)
        if index is None and not (call_id or name or piece):
            return None
        call = self._owner(index, call_id, name, piece)
        if call is None:
            call = CallParts(index, call_id, name)
            self.calls.append(call)
        if _repeats(call, index, call_id, name, piece):
            return None
        call.call_id = call.call_id or call_id
        call.name = name if name.startswith(call.name) else call.name + name
        call.pieces.append(piece)
        call.extra |= _extra(fragment)
        return self.calls.index(call), call.name, piece

    def add_whole(self, call: Any) -> tuple[int, str, str] | None:
        """Take a call of an unstreamed reply in: each is one of its own."""
        if not isinstance(call, Mapping):
            return None
        index, call_id, name, piece = _read(call)
        self.calls.append(CallParts(index, call_id, name, [piece], _extra(call)))
        return len(self.calls) - 1, name, piece

    def named(self) -> list[CallParts]:
        """The calls, without those of which only a position came."""
        return [call for call in self.calls if call.name or call.call_id or call.arguments]

    def _owner(self, index: int | None, call_id: str, name: str, piece: str) -> CallParts | None:
        """The call a fragment goes on with; None: it begins one."""
        call = self._candidate(index, call_id, name)
        if call is None or (name and _is_of_another(call, call_id, name, piece)):
            return None
        if _repeats(call, index, call_id, name, piece):
            return call
        begins_again = bool(name and piece) and call.is_complete()
        differs = bool(name and call.name) and name != call.name
        is_its_name = not differs or _goes_on_with_name(call, index, call_id, name, piece)
        return call if is_its_name and not begins_again else None

    def _candidate(self, index: int | None, call_id: str, name: str) -> CallParts | None:
        newest_first = list(reversed(self.calls))
        same_id = [call for call in newest_first if call_id and call.call_id == call_id]
        same_both = [call for call in same_id if index in (None, call.index)]
        if same_both or (same_id and not name):
            return (same_both or same_id)[0]
        if index is not None:
            return next((call for call in newest_first if call.index == index), None)
        return newest_first[0] if newest_first else None


def _is_of_another(call: CallParts, call_id: str, name: str, piece: str) -> bool:
    """Whether another id means another call; some servers give each fragment of one a new id and its name."""
    if not call_id or not call.call_id or call_id == call.call_id:
        return False
    begins = not piece.strip() or piece.lstrip().startswith(("{", '"'))
    return begins or name != call.name or not call.arguments.strip() or call.is_complete()


def _repeats(call: CallParts, index: int | None, call_id: str, name: str, piece: str) -> bool:
    """Whether a server that has sent the call in pieces now sends the whole of it once more."""
    is_named = index is not None and bool(call_id and name and piece) and len(call.pieces) > 1
    is_same = is_named and (call.index, call.call_id, call.name) == (index, call_id, name)
    return is_same and call.arguments == piece


def _goes_on_with_name(call: CallParts, index: int | None, call_id: str, name: str, piece: str) -> bool:
    is_of_it = call_id == call.call_id if call_id else index is not None
    return is_of_it and not call.arguments and (not piece or name.startswith(call.name))


def _extra(fragment: Mapping[str, Any]) -> dict[str, Any]:
    return read_arguments(extra).value if isinstance(extra := fragment.get("extra_content"), dict) else {}


def _read(fragment: Mapping[str, Any]) -> tuple[int | None, str, str, str]:
    function = fragment.get("function")
    function = function if isinstance(function, Mapping) else fragment
    arguments = function.get("arguments")
    piece = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
    return (
        _position(fragment.get("index")),
        repaired(str(fragment.get("id") or "")),
        str(function.get("name") or ""),
        piece,
    )


def _position(told: Any) -> int | None:
    """What a server calls a position: a number, or a text of one."""
    if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) <= _MOST_DIGITS:
        return int(told)
    is_number = isinstance(told, int | float) and abs(told) < 10**_MOST_DIGITS
    return int(told) if is_number else None
