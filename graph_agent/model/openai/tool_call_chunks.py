"""Assembles the tool calls of a reply from streamed chunks, and parses their arguments as models really send them.

Servers disagree on how a chunk says which call it belongs to: `index` may be missing, null, or the same for all
calls; ids may be missing, repeated in each chunk, or reused for another call; names may be repeated, come in
pieces, or grow from chunk to chunk.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

__all__ = ["Arguments", "PartialCall", "ToolCallAssembler", "parse_arguments", "replace_surrogates"]

_MAX_ENCODINGS = 3
"""How often an object may be encoded into a string of itself."""
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)
_END_MARKERS = re.compile(r"(?:\s*(?:<[|｜][^<>|｜]{1,40}[|｜]>|</\w{1,40}>))+\s*\Z")
"""Tokens that end a call in a model's own format and that its server should have removed."""
_INT64 = range(-(2**63), 2**64)
_TYPE_NAMES = {list: "a list", str: "a string within strings", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Arguments:
    """Parsed arguments; `{}` with an error where they cannot be used."""

    value: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    """Why they cannot be used, in words for the model; empty when they can."""


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_reject_constant)


def parse_arguments(raw: Any) -> Arguments:
    """Arguments sent as text, as text within text, as an object, or not at all (which means no arguments)."""
    for _ in range(_MAX_ENCODINGS):
        if isinstance(raw, dict):
            break
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            return Arguments()
        if not isinstance(raw, str):
            break
        try:
            raw = _decode(raw)
        except (ValueError, RecursionError) as error:
            if _is_cut_off(raw, error):
                what = f"the arguments end in the middle, after {len(raw)} characters"
                return Arguments(error=f"{what}: they were probably cut off; send them whole, in smaller parts")
            return Arguments(error=f"the arguments are not valid JSON ({error}); send one JSON object")
    if not isinstance(raw, dict):
        kind = _TYPE_NAMES.get(type(raw), "a number")
        return Arguments(error=f"the arguments are {kind}, not a JSON object; send one JSON object")
    try:
        return Arguments(_storable(raw))
    except (ValueError, RecursionError) as error:
        return Arguments(error=f"the arguments cannot be used: {error}")


def _is_cut_off(text: str, error: Exception) -> bool:
    """Whether the text is correct as far as it goes, and only its end is missing."""
    if not isinstance(error, json.JSONDecodeError) or not text.lstrip().startswith("{"):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip())


def replace_surrogates(text: str) -> str:
    """The text with surrogate pairs joined, and single surrogates replaced, which UTF-8 cannot encode."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decode(text: str) -> Any:
    """The value of the text. Some servers put an empty object before the real one, or send the whole twice."""
    fenced = _FENCED.fullmatch(text)
    bare = _END_MARKERS.sub("", fenced[1] if fenced else text)
    try:
        return _DECODER.decode(bare)
    except json.JSONDecodeError:
        values = _values(bare)
        if not values or any(value != values[0] for value in values):
            raise
        return values[0]


def _values(text: str) -> list[Any]:
    """The values that follow one another, without empty objects; none where something else follows."""
    values: list[Any] = []
    while text := text.strip():
        try:
            value, end = _DECODER.raw_decode(text)
        except json.JSONDecodeError:
            return []
        values.append(value)
        text = text[end:]
    return [value for value in values if value != {}]


def _storable(value: Any) -> Any:
    match value:
        case str():
            return replace_surrogates(value)
        case bool():
            return value
        case int() if value not in _INT64:
            raise ValueError(f"the number {str(value)[:40]} does not fit into 64 bits")
        case float() if value in (float("inf"), float("-inf")):
            raise ValueError("a number is too large")
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {replace_surrogates(key): _storable(item) for key, item in value.items()}
        case _:
            return value


_MAX_DIGITS = 12
_ENDINGS = ("}", "]", '"', "null")
"""How complete arguments may end; tested first, because parsing them all again for each chunk is slow."""


@dataclass(slots=True, eq=False)
class PartialCall:
    """One call as far as it has arrived."""

    index: int | None
    call_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    """What the server wants to get back with this call (`extra_content`)."""

    @property
    def joined_arguments(self) -> str:
        """All pieces of the arguments, joined."""
        return "".join(self.pieces)

    def arguments(self) -> str:
        """The arguments; where each piece repeats all before it, the last piece is the whole."""
        pieces = list(filter(None, self.pieces))
        is_growing = len(pieces) > 1 and all(later.startswith(piece) for piece, later in pairwise(pieces))
        return pieces[-1] if is_growing and not self.is_complete() else self.joined_arguments

    def is_complete(self) -> bool:
        """Whether the arguments are a whole JSON value, so that a further piece cannot belong to them."""
        last = next((piece for piece in reversed(self.pieces) if piece.strip()), "")
        if not last.rstrip().endswith(_ENDINGS):
            return False
        try:
            json.loads(self.joined_arguments, strict=False)
        except (ValueError, RecursionError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Chunk:
    index: int | None
    call_id: str
    name: str
    piece: str
    extra: dict[str, Any]


class ToolCallAssembler:
    """The calls of one reply, in order of arrival."""

    def __init__(self) -> None:
        self.calls: list[PartialCall] = []

    def add(self, raw: Any, *, is_whole: bool = False) -> tuple[int, str, str] | None:
        """Add a streamed chunk, or a whole call, which is always a new one.

        Returns the position of the call, its name so far, and the new piece of its arguments; None for nothing new.
        """
        if not isinstance(raw, Mapping):
            return None
        chunk = _parse_chunk(raw)
        if not is_whole and chunk.index is None and not (chunk.call_id or chunk.name or chunk.piece):
            return None
        call = self._owner(chunk) if self.calls and not is_whole else None
        if call is None:
            call = PartialCall(chunk.index, chunk.call_id, chunk.name)
            self.calls.append(call)
        elif _repeats(call, chunk):
            return None
        call.call_id = call.call_id or chunk.call_id
        call.name = chunk.name if chunk.name.startswith(call.name) else call.name + chunk.name
        call.pieces.append(chunk.piece)
        call.extra |= chunk.extra
        return self.calls.index(call), call.name, chunk.piece

    def _owner(self, chunk: _Chunk) -> PartialCall | None:
        """The call that a chunk continues; None: it begins a new one."""
        call = self._candidate(chunk)
        if call is None or (chunk.name and _has_another_id(call, chunk)):
            return None
        if _repeats(call, chunk):
            return call
        if chunk.name and chunk.piece and call.is_complete():
            return None
        if not chunk.name or not call.name or chunk.name == call.name:
            return call
        # Another name continues that of the call only where nothing else can be meant.
        belongs = chunk.call_id == call.call_id if chunk.call_id else chunk.index is not None
        is_longer = not chunk.piece or chunk.name.startswith(call.name)
        return call if belongs and not call.joined_arguments and is_longer else None

    def _candidate(self, chunk: _Chunk) -> PartialCall | None:
        """The newest call with the id of the chunk, else with its index; the newest of all where it has neither."""
        same_id = None
        for call in reversed(self.calls) if chunk.call_id else ():
            if call.call_id == chunk.call_id:
                if chunk.index in (None, call.index):
                    return call
                same_id = same_id or call
        if same_id and not chunk.name:
            return same_id
        newest = self.calls[-1]
        if chunk.piece and not chunk.name and not chunk.call_id and newest.name and not newest.is_complete():
            # Some servers count the fragments of one call instead of the calls; no call begins without a name.
            return next((call for call in reversed(self.calls) if call.index == chunk.index), newest)
        for call in reversed(self.calls):
            if chunk.index in (None, call.index):
                return call
        return None


def _has_another_id(call: PartialCall, chunk: _Chunk) -> bool:
    """Whether another id means another call; some servers give each chunk of one call a new id and its name."""
    if not chunk.call_id or not call.call_id or chunk.call_id == call.call_id:
        return False
    begins = not chunk.piece.strip() or chunk.piece.lstrip().startswith(("{", '"'))
    return begins or chunk.name != call.name or not call.joined_arguments.strip() or call.is_complete()


def _repeats(call: PartialCall, chunk: _Chunk) -> bool:
    """Whether a server that has streamed the call in pieces now sends the whole of it again."""
    if len(call.pieces) < 2 or chunk.index is None or not (chunk.call_id and chunk.name and chunk.piece):
        return False
    is_same = (call.index, call.call_id, call.name) == (chunk.index, chunk.call_id, chunk.name)
    return is_same and call.joined_arguments == chunk.piece


def _parse_chunk(raw: Mapping[str, Any]) -> _Chunk:
    function = raw.get("function")
    function = function if isinstance(function, Mapping) else raw
    arguments = function.get("arguments")
    extra = raw.get("extra_content")
    # The index may be a number or the text of one.
    index: Any = raw.get("index")
    if isinstance(index, str) and index.isascii() and index.isdigit() and len(index) <= _MAX_DIGITS:
        index = int(index)
    return _Chunk(
        int(index) if isinstance(index, int | float) and abs(index) < 10**_MAX_DIGITS else None,
        replace_surrogates(str(raw.get("id") or "")),
        str(function.get("name") or ""),
        arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments),
        parse_arguments(extra).value if isinstance(extra, dict) else {},
    )
