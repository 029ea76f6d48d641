import io
import json
from typing import Any

import pytest

from graph_agent.errors import UsageError
from graph_agent.ports.thread_file import FORMAT, ContentDigest
from graph_agent.storage.sqlite.thread_import import Content, FileHeader, Row, read_parts
from tests.fakes.thread_files import reseal


def changed(text: str, table: str, **values: Any) -> str:
    """The file with the first row of a table changed; made where there is none."""
    document = json.loads(text)
    next(row for row in document["rows"] if row["table"] == table).update(values)
    return reseal(document)


_CUT = {"table": "prune_points", "checkpoint_id": "c", "branch": 0, "seq": 7}


_GONE = {"blob": "blob:sha256:" + "0" * 64, "data": None}


def whole(rows: tuple[Any, ...] = (_CUT,), blobs: tuple[Any, ...] = (_GONE,), **changed: Any) -> dict[str, Any]:
    top = {"format": FORMAT, "version": 3, "thread_id": "t", **changed}
    seal = ContentDigest()
    for part in (top, *rows, *blobs):
        seal.add(part)
    return {
        **top,
        "rows": list(rows),
        "blobs": list(blobs),
        "end": {"rows": len(rows), "blobs": len(blobs), "sha256": seal.text()},
    }


def read(text: str) -> list[FileHeader | Row | Content]:
    return list(read_parts(io.StringIO(text)))


@pytest.mark.parametrize("indent", [None, 0, 4])
def test_a_file_is_read_part_by_part_in_any_layout(indent: int | None) -> None:
    assert read(json.dumps(whole(), indent=indent) + "\n \n") == [
        FileHeader("t"),
        Row("prune_points", {"checkpoint_id": "c", "branch": 0, "seq": 7}),
        Content(_GONE["blob"] or "", None),
    ]


def test_a_value_longer_than_what_is_read_at_once_is_whole() -> None:
    long = {**_CUT, "checkpoint_id": "x" * 300_000}

    parts = read(json.dumps(whole((long, _CUT))))

    assert [len(part.values["checkpoint_id"]) for part in parts if isinstance(part, Row)] == [300_000, 1]


def test_a_file_that_is_cut_anywhere_is_refused() -> None:
    text = json.dumps(whole())

    for length in range(len(text)):
        with pytest.raises(UsageError, match="Nothing was changed"):
            read(text[:length])


@pytest.mark.parametrize("place", range(0, 380, 7))
def test_a_file_in_which_anything_was_changed_is_refused(place: int) -> None:
    text = json.dumps(whole())
    at = place % len(text)
    other = "7" if text[at] != "7" else "8"

    with pytest.raises(UsageError, match="Nothing was changed"):
        read(text[:at] + other + text[at + 1 :])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it ends where"),
        ("null", "it has 'n' where"),
        ("\x00\xff", "where one of"),
        ('{"a": NaN}', "not JSON"),
        ("[" * 100_000, "it has '[' where"),
        ('{"rows": ' + "[" * 100_000, "not JSON"),
        ('{"rows": [' + "9" * 5000 + "]}", "not JSON"),
        ("{7: 1}", "not the name"),
        (json.dumps(whole(format="other")), "its format is 'other'"),
        (json.dumps(whole(version=4)), "version 4, but this program reads up to 3; update"),
        (json.dumps(whole(version="1")), "its version or its thread"),
        (json.dumps(whole(thread_id=" ")), "its version or its thread"),
        (json.dumps(whole(thread_id=None)), "its version or its thread"),
        (json.dumps(whole(({"table": "sqlite_schema"},))), "no table 'sqlite_schema'"),
        (json.dumps(whole((7,))), "no table None"),
        (json.dumps(whole(({"table": ["x"]},))), "no table"),
        (json.dumps(whole(({**_CUT, "more": 1},))), "expected columns"),
        (json.dumps(whole(({**_CUT, "seq": "7"},))), "seq is not a whole number"),
        (json.dumps(whole((), ({"blob": 7, "data": ""},))), "not text"),
        (json.dumps(whole((), (7,))), "other fields"),
        (json.dumps(whole()) + "{}", "data after its end"),
        (json.dumps({**whole(), "more": 1}), "data after its end"),
        (json.dumps({"format": FORMAT, "version": 1, "thread_id": "t"}), "cut or changed"),
    ],
)
def test_an_invalid_file_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(UsageError) as refusal:
        read(text)

    assert told in str(refusal.value)
