"""Reads an exported thread part by part, however long it is and however it is laid out. Believes nothing of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TextIO

from graph_agent.errors import UsageError
from graph_agent.ports.thread_file import ALONE, FORMAT, SUB_AGENT, TABLES, VERSION, Seal, Unfit, wrote

__all__ = ["Content", "Row", "Top", "read_parts", "unfit"]

_PIECE = 1 << 16
_LONGEST = 1 << 30
"""Characters of one part; more is nothing that this program wrote."""
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Top:
    """What stands first."""

    thread_id: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row, its values as they are stored."""

    table: str
    values: dict[str, Any]
    sub_agent: str = ""
    """Thread of the sub-agent that it is about, there; empty for the thread itself."""


@dataclass(frozen=True, slots=True)
class Content:
    """A content that rows name."""

    reference: str
    data: str | None
    """In Base64; None where it was gone already when the file was written."""


def unfit(what: str) -> UsageError:
    """The refusal of a file; nothing of it has been taken in."""
    return UsageError(f"this is no thread that can be imported: {what}. Nothing was changed.")


def read_parts(file: TextIO) -> Iterator[Top | Row | Content]:
    """The parts in order. Only who has taken the last one knows that the file is whole: its seal comes at the end.

    Raises:
        UsageError: it is something else, was cut, changed, or written by a newer version.
    """
    seal, counts = Seal(), {"rows": 0, "blobs": 0}
    top: dict[str, Any] = {}
    end: Any = None
    for key, value in _members(_Text(file)):
        if end is not None:
            raise unfit("something follows its end")
        if key in counts:
            if not counts["rows"] + counts["blobs"]:
                yield _top(top)
                seal.add(top)
            counts[key] += 1
            seal.add(value)
            yield _row(value) if key == "rows" else _content(value)
        elif key == "end":
            end = value
        else:
            top[key] = value
    if not counts["rows"]:
        _top(top)
    if end != {**counts, "sha256": seal.text()}:
        raise unfit("it was cut or changed after it was written")


def _top(value: dict[str, Any]) -> Top:
    if value.get("format") != FORMAT:
        raise unfit(f"its format is {value.get('format')!r} and not {FORMAT!r}")
    version = value.get("version")
    if type(version) is int and version > VERSION:
        raise unfit(f"it has version {version}, and this program knows {VERSION}; update graph-agent")
    thread_id = value.get("thread_id")
    if version not in (ALONE, VERSION) or not isinstance(thread_id, str) or not thread_id.strip():
        raise unfit("it does not say which version or which thread it is")
    return Top(thread_id)


def _row(value: Any) -> Row:
    table = value.get("table") if isinstance(value, dict) else None
    columns = TABLES.get(table) if isinstance(table, str) else None
    if table is None or columns is None:
        raise unfit(f"there is no table {table!r}")
    sub_agent = value.get(SUB_AGENT, "")
    names = value.keys() - {SUB_AGENT}
    if names != {"table", *(column.name for column in columns)} or not isinstance(sub_agent, str):
        raise unfit(f"a row of {table} has other values than such a row has")
    try:
        return Row(table, {column.name: wrote(column, value[column.name]) for column in columns}, sub_agent)
    except (Unfit, RecursionError) as error:
        raise unfit(f"in a row of {table}, {error}") from error


def _content(value: Any) -> Content:
    if not isinstance(value, dict) or value.keys() != {"blob", "data"}:
        raise unfit("a content has other values than its name and its data")
    reference, data = value["blob"], value["data"]
    if not isinstance(reference, str) or not isinstance(data, str | None):
        raise unfit("a content is no text")
    return Content(reference, data)


class _Text:
    """The text of a file, of which no more is held than one value."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._held = ""
        self._at = 0
        self._is_all = False
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def next_sign(self) -> str:
        """The next character that is no blank, without taking it; empty at the end."""
        while True:
            while self._at < len(self._held):
                if self._held[self._at] not in _BLANK:
                    return self._held[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, signs: str) -> str:
        """Take the next character, which must be one of these."""
        sign = self.next_sign()
        if not sign or sign not in signs:
            where = f"{sign!r} stands where" if sign else "it ends where"
            raise unfit(f"it is not JSON of the form it should have: {where} one of {signs!r} was expected")
        self._at += 1
        return sign

    def value(self) -> Any:
        """The next value, whole."""
        self.next_sign()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._held, self._at)
            except (ValueError, RecursionError) as error:
                if not self._more():
                    raise unfit(f"it is not JSON, or was cut ({error})") from error
                continue
            # A number may go on in what is not read yet.
            if end < len(self._held) or not self._more():
                self._at = end
                return value

    def _more(self) -> bool:
        """Read as much again as is held, so that a long value is not tried over and over."""
        if self._is_all:
            return False
        kept = self._held[self._at :]
        if len(kept) > _LONGEST:
            raise unfit(f"one value in it has more than {_LONGEST} characters")
        try:
            piece = self._file.read(max(_PIECE, len(kept)))
        except ValueError as error:
            raise unfit(f"it is not text ({error})") from error
        self._held, self._at, self._is_all = kept + piece, 0, not piece
        return bool(piece)


def _members(text: _Text) -> Iterator[tuple[str, Any]]:
    """Name and value of each member of the one object; of a list each element with the name of the list."""
    text.take("{")
    while True:
        name = text.value()
        if not isinstance(name, str):
            raise unfit(f"{name!r} is no name of a part")
        text.take(":")
        if text.next_sign() == "[":
            yield from ((name, element) for element in _elements(text))
        else:
            yield name, text.value()
        if text.take(",}") == "}":
            break
    if text.next_sign():
        raise unfit("something follows its end")


def _elements(text: _Text) -> Iterator[Any]:
    text.take("[")
    if text.next_sign() == "]":
        text.take("]")
        return
    while True:
        yield text.value()
        if text.take(",]") == "]":
            return


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
