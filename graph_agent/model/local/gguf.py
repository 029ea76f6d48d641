"""Reads what a GGUF file says of itself: its header, never its weights. Knows no runtime.

Local models that were tried with this program: how their files are told, and under which licence they come.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from graph_agent.config.model_choice import MAGIC
from graph_agent.config.paths import special_file_kind
from graph_agent.errors import UsageError

__all__ = ["KNOWN", "Header", "KnownModel", "file_sha256", "find_known_model", "read_header"]

_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MOST_ENTRIES = 10_000
_MOST_ITEMS = 5_000_000
_LONGEST = 16_000_000


@dataclass(frozen=True, slots=True)
class Header:
    """What the header says."""

    version: int
    architecture: str
    name: str
    licence: str
    """As the file names it; empty where it does not."""
    context_length: int
    """Tokens the model was made for; 0 where the file does not say."""
    has_chat_template: bool
    """Whether it was made to be talked to; a base model was not."""


class _Damaged(Exception):
    """The header ends too early, or holds what no header holds."""


def read_header(path: Path) -> Header:
    """The header of a whole GGUF file.

    Raises:
        UsageError: there is no such file, it is of another format or version, or its end is missing.
    """
    if kind := special_file_kind(path):
        raise UsageError(f"{str(path)!r} is {kind}, no GGUF file.")
    try:
        with path.open("rb") as file:
            return _header(file, path)
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except (_Damaged, struct.error, TypeError, ValueError, OverflowError) as error:
        raise UsageError(
            f"{str(path)!r} is damaged or not whole: its header does not hold together. Fetch the file again."
        ) from error


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal; a second for half a gigabyte."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _header(file: BufferedReader, path: Path) -> Header:
    if file.read(len(MAGIC)) != MAGIC:
        raise UsageError(f"{str(path)!r} is no GGUF file: it does not begin with the letters GGUF.")
    version = int(_scalar(file, "I"))
    if version not in _VERSIONS:
        raise UsageError(f"{str(path)!r} is GGUF of version {version}; versions 2 and 3 can be read.")
    tensors, entries = int(_scalar(file, "Q")), int(_scalar(file, "Q"))
    if entries > _MOST_ENTRIES or tensors > _MOST_ENTRIES:
        raise _Damaged
    told = dict(_entry(file) for _ in range(entries))
    _require_whole(file, path, tensors, int(told.get("general.alignment") or 32))
    return _told(version, told)


def _told(version: int, told: Mapping[str, Any]) -> Header:
    architecture = str(told.get("general.architecture", ""))
    return Header(
        version,
        architecture,
        str(told.get("general.name", "")),
        str(told.get("general.license", "")),
        int(told.get(f"{architecture}.context_length") or 0),
        bool(told.get("tokenizer.chat_template")),
    )


def _require_whole(file: BufferedReader, path: Path, tensors: int, alignment: int) -> None:
    """The last tensor has to begin inside the file; how long it is depends on the quantisation."""
    last = max((_tensor_offset(file) for _ in range(tensors)), default=0)
    begin = -(-file.tell() // alignment) * alignment
    if tensors == 0 or begin + last >= path.stat().st_size:
        raise UsageError(f"{str(path)!r} is not whole: weights that its header names are missing. Fetch it again.")


def _tensor_offset(file: BufferedReader) -> int:
    _text(file)
    dimensions = int(_scalar(file, "I"))
    if dimensions > 8:
        raise _Damaged
    file.read(8 * dimensions + 4)
    return int(_scalar(file, "Q"))


def _entry(file: BufferedReader) -> tuple[str, Any]:
    key = _text(file)
    return key, _value(file, int(_scalar(file, "I")))


def _value(file: BufferedReader, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind == _ARRAY:
        return _passed_over(file)
    if kind not in _SCALARS:
        raise _Damaged
    return _scalar(file, _SCALARS[kind])


def _passed_over(file: BufferedReader) -> None:
    """Arrays hold vocabularies, which nobody asks for here."""
    kind, count = int(_scalar(file, "I")), int(_scalar(file, "Q"))
    if count > _MOST_ITEMS or kind == _ARRAY:
        raise _Damaged
    if kind in _SCALARS:
        file.seek(struct.calcsize(f"<{_SCALARS[kind]}") * count, 1)
        return
    for _ in range(count):
        _text(file)


def _scalar(file: BufferedReader, code: str) -> Any:
    layout = struct.Struct(f"<{code}")
    return layout.unpack(file.read(layout.size))[0]


def _text(file: BufferedReader) -> str:
    length = int(_scalar(file, "Q"))
    if length > _LONGEST:
        raise _Damaged
    read = file.read(length)
    if len(read) != length:
        raise _Damaged
    return read.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One file, byte for byte."""

    name: str
    bytes: int
    sha256: str
    licence: str
    memory: str
    """Main memory it takes."""
    about: str
    """What was found out about it."""


KNOWN: tuple[KnownModel, ...] = (
    KnownModel(
        "Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "Apache-2.0",
        "1.9 GB",
        "picks the right single action of 20 in 19",
    ),
    KnownModel(
        "Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Apache-2.0",
        "0.7 GB",
        "weaker and three times as fast: for machines with little memory",
    ),
)


def find_known_model(size: int) -> KnownModel | None:
    """The model whose file has this many bytes."""
    return next((known for known in KNOWN if known.bytes == size), None)
