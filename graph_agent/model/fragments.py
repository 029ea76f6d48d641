"""Puts the calls of a reply together from the fragments that servers send. Knows no transport and no tool.

Servers disagree on how a fragment says which call it belongs to: `index` may be missing, null, or the same for all
calls; ids may be missing, repeated in each fragment, or reused for another call; names may be repeated, come in
pieces, or grow from fragment to fragment.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CallParts", "Fragments"]


@dataclass(slots=True, eq=False)
class CallParts:
    """One call as far as it has arrived."""

    index: int | None
    """What the server calls its position."""
    call_id: str
    name: str
    arguments: str = ""

    def is_complete(self) -> bool:
        """Whether the arguments are a whole JSON value: what follows cannot belong to them."""
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
        call.call_id = call.call_id or call_id
        call.name = name if name.startswith(call.name) else call.name + name
        call.arguments += piece
        return self.calls.index(call), call.name, piece

    def add_whole(self, call: Any) -> tuple[int, str, str] | None:
        """Take a call of an unstreamed reply in: each is one of its own."""
        if not isinstance(call, Mapping):
            return None
        index, call_id, name, piece = _read(call)
        self.calls.append(CallParts(index, call_id, name, piece))
        return len(self.calls) - 1, name, piece

    def _owner(self, index: int | None, call_id: str, name: str, piece: str) -> CallParts | None:
        """The call a fragment goes on with; None: it begins one."""
        call = self._candidate(index, call_id)
        if call is None or (call_id and call.call_id and call_id != call.call_id and name):
            return None
        begins_again = bool(name and piece) and call.is_complete()
        differs = bool(name and call.name) and name != call.name
        is_its_name = not differs or _goes_on_with_name(call, index, call_id, name, piece)
        return call if is_its_name and not begins_again else None

    def _candidate(self, index: int | None, call_id: str) -> CallParts | None:
        newest_first = list(reversed(self.calls))
        for call in newest_first if call_id else ():
            if call.call_id == call_id and index in (None, call.index):
                return call
        if index is not None:
            return next((call for call in newest_first if call.index == index), None)
        return newest_first[0] if newest_first else None


def _goes_on_with_name(call: CallParts, index: int | None, call_id: str, name: str, piece: str) -> bool:
    is_of_it = call_id == call.call_id if call_id else index is not None
    return is_of_it and not call.arguments and (not piece or name.startswith(call.name))


def _read(fragment: Mapping[str, Any]) -> tuple[int | None, str, str, str]:
    function = fragment.get("function")
    function = function if isinstance(function, Mapping) else fragment
    arguments = function.get("arguments")
    piece = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
    index = fragment.get("index")
    return (
        index if isinstance(index, int) else None,
        str(fragment.get("id") or ""),
        str(function.get("name") or ""),
        piece,
    )
