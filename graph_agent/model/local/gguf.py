"""Reads the header of a GGUF file, and lists the files that were tried with this program."""

import hashlib
import os
import struct
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from graph_agent.config.model_choice import MAGIC
from graph_agent.config.paths import special_file_kind
from graph_agent.errors import UsageError

__all__ = ["KNOWN_MODELS", "Header", "KnownModel", "file_sha256", "find_known_model", "read_header"]

_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MAX_ENTRIES = 10_000
_MAX_ITEMS = 5_000_000
_MAX_TEXT = 16_000_000


@dataclass(frozen=True, slots=True)
class Header:
    """What a file says about itself."""

    version: int
    architecture: str
    name: str
    licence: str
    """Empty where the file names none."""
    context_length: int
    """Tokens the model was made for; 0 where the file does not say."""
    has_chat_template: bool
    """False for a base model, which cannot hold a conversation."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One file, byte for byte."""

    name: str
    bytes: int
    sha256: str
    licence: str
    memory: str
    """Main memory it needs."""
    about: str
    """How well it does."""


KNOWN_MODELS: tuple[KnownModel, ...] = (
    KnownModel(
        "Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        "Apache-2.0",
        "1.9 GB",
        "picks the right single action in 19 of 20 requests",
    ),
    KnownModel(
        "Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        "Apache-2.0",
        "0.7 GB",
        "weaker, but three times as fast: for machines with little memory",
    ),
)


def find_known_model(size: int) -> KnownModel | None:
    """The model whose file has this many bytes."""
    return next((known for known in KNOWN_MODELS if known.bytes == size), None)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal; takes a second for half a gigabyte."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_header(path: Path) -> Header:
    """The header of a complete GGUF file.

    Raises:
        UsageError: there is no such file, it has another format or version, or its end is missing.
    """
    if kind := special_file_kind(path):
        raise UsageError(f"{str(path)!r} is {kind}, not a GGUF file.")
    try:
        with path.open("rb") as file:
            return _parse_header(file, path)
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except (struct.error, KeyError, TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{str(path)!r} is damaged or incomplete. Download the file again.") from error


def _parse_header(file: BufferedReader, path: Path) -> Header:
    if file.read(len(MAGIC)) != MAGIC:
        raise UsageError(f"{str(path)!r} is not a GGUF file: it does not begin with the letters GGUF.")
    version = _number(file, "I")
    if version not in _VERSIONS:
        raise UsageError(f"{str(path)!r} has GGUF version {version}; only versions 2 and 3 are supported.")
    tensors, entries = _number(file, "Q", _MAX_ENTRIES), _number(file, "Q", _MAX_ENTRIES)
    fields = {_text(file): _value(file) for _ in range(entries)}
    # The last tensor has to begin inside the file; how long it is depends on the quantisation.
    last = 0
    for _ in range(tensors):
        _text(file)
        file.read(8 * _number(file, "I", 8) + 4)
        last = max(last, _number(file, "Q"))
    alignment = int(fields.get("general.alignment") or 32)
    begin = -(-file.seek(0, os.SEEK_CUR) // alignment) * alignment
    if tensors == 0 or begin + last >= path.stat().st_size:
        raise UsageError(f"{str(path)!r} is incomplete: its weights are cut off. Download the file again.")
    architecture = str(fields.get("general.architecture", ""))
    return Header(
        version,
        architecture,
        str(fields.get("general.name", "")),
        str(fields.get("general.license", "")),
        int(fields.get(f"{architecture}.context_length") or 0),
        bool(fields.get("tokenizer.chat_template")),
    )


def _value(file: BufferedReader) -> Any:
    kind = _number(file, "I")
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _number(file, _SCALARS[kind])
    # Arrays hold vocabularies, which are skipped.
    item, count = _number(file, "I"), _number(file, "Q", _MAX_ITEMS)
    if item == _STRING:
        for _ in range(count):
            _text(file)
    else:
        file.seek(struct.calcsize(f"<{_SCALARS[item]}") * count, 1)
    return None


def _text(file: BufferedReader) -> str:
    length = _number(file, "Q", _MAX_TEXT)
    read = file.read(length)
    if len(read) != length:
        raise ValueError("the file ends within a text")
    return read.decode("utf-8", "replace")


def _number(file: BufferedReader, code: str, most: int | None = None) -> Any:
    """The next number, in the notation of `struct`; with `most`, a count that no real file exceeds."""
    layout = f"<{code}"
    (value,) = struct.unpack(layout, file.read(struct.calcsize(layout)))
    if most is not None and value > most:
        raise ValueError(f"{value} is more than any real file has")
    return value
