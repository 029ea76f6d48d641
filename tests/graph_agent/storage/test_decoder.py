from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from graph_agent.errors import DamagedDatabase
from graph_agent.storage.decoder import PlainDecoder, Snapshot

decode = PlainDecoder().value


def _extension(code: int, *content: Any) -> ormsgpack.Ext:
    return ormsgpack.Ext(code, ormsgpack.packb(content))


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def test_a_message_becomes_the_dictionary_of_its_fields() -> None:
    fields = {"type": "human", "id": "m1", "content": "hello"}
    blob = _packed([_extension(5, "langchain_core.messages.human", "HumanMessage", fields, "model_validate_json")])

    assert decode("msgpack", blob) == [fields]


def test_nothing_that_a_blob_names_is_imported_or_called(tmp_path: Path) -> None:
    target = tmp_path / "touched"
    blobs = [
        _packed(_extension(0, "os", "system", f"touch {target}")),
        _packed(_extension(1, "os", "system", [f"touch {target}"])),
        _packed(_extension(3, "os", "environ", f"touch {target}", "get")),
    ]

    decoded = [decode("msgpack", blob) for blob in blobs]

    assert decoded == [
        {"__type__": "os.system", "value": f"touch {target}"},
        {"__type__": "os.system", "value": [f"touch {target}"]},
        {"__type__": "os.environ", "value": f"touch {target}"},
    ]
    assert not target.exists()


def test_values_that_json_cannot_hold_are_converted() -> None:
    blob = _packed({1: b"abc", "n": float("nan"), "pair": (1, 2), "array": _extension(6, "<f8", [1], "C", b"")})

    decoded = decode("msgpack", blob)

    assert decoded == {
        "1": {"__type__": "bytes", "size": 3},
        "n": "nan",
        "pair": [1, 2],
        "array": {"__type__": "extension 6", "size": decoded["array"]["size"]},
    }


def test_a_delta_snapshot_stays_marked() -> None:
    blob = _packed({"calls": ormsgpack.Ext(7, _packed({"a": (1,)}))})

    assert decode("msgpack", blob) == {"calls": Snapshot({"a": [1]})}


def test_null_json_and_unknown_kinds_are_read_without_guessing() -> None:
    decoded = [decode("null", b""), decode("json", b'{"a": 1}'), decode("pickle", b"cos\nsystem")]

    assert decoded == [None, {"a": 1}, {"__type__": "pickle", "size": 10}]


@pytest.mark.parametrize("blob", [b"", b"\xc1", _packed({"a": 1})[:-1], _packed(ormsgpack.Ext(5, b"\xc1"))])
def test_a_torn_blob_is_named_as_damage(blob: bytes) -> None:
    with pytest.raises(DamagedDatabase, match="cannot be decoded"):
        decode("msgpack", blob)


def test_a_blob_nested_beyond_reason_is_named_as_damage() -> None:
    blob = _packed(1)
    for _ in range(3000):
        blob = _packed(ormsgpack.Ext(7, blob))

    with pytest.raises(DamagedDatabase, match="cannot be decoded"):
        decode("msgpack", blob)


@pytest.mark.parametrize("notes", [b"[1]", b'{"step": {}}', b"{"])
def test_notes_about_a_checkpoint_in_another_shape_are_damage(notes: bytes) -> None:
    with pytest.raises(DamagedDatabase):
        PlainDecoder().metadata(notes)
