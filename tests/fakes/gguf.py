"""Writes small files in the GGUF format, whole or wanting."""

import struct
from pathlib import Path

__all__ = ["CHAT", "LIBRARY", "write_gguf"]

LIBRARY = Path(__file__).parent / "local_library"
"""A folder for `sys.path`: a runtime for local models that needs none."""

CHAT: dict[str, str | int] = {
    "general.architecture": "tiny",
    "general.name": "Tiny Instruct",
    "general.license": "mit",
    "tiny.context_length": 512,
    "tokenizer.chat_template": "{{ messages }}",
}
"""What the header of a model that can be talked to says."""


def write_gguf(
    path: Path, header_values: dict[str, str | int] | None = None, *, version: int = 3, weights: int = 64
) -> Path:
    """One tensor that begins at byte 32 of the weights, and a vocabulary."""
    entries = [
        _text(key) + _value(value) for key, value in (CHAT if header_values is None else header_values).items()
    ]
    entries.append(_text("vocabulary") + struct.pack("<IIQ", 9, 8, 2) + _text("a") + _text("b"))
    entries.append(_text("scores") + struct.pack("<IIQ", 9, 6, 2) + bytes(8))
    tensor = _text("weights") + struct.pack("<IQIQ", 1, 8, 0, 32)
    header = b"GGUF" + struct.pack("<IQQ", version, 1, len(entries)) + b"".join(entries) + tensor
    path.write_bytes(header + bytes(-len(header) % 32) + bytes(weights))
    return path


def _value(value: str | int) -> bytes:
    return struct.pack("<I", 8) + _text(value) if isinstance(value, str) else struct.pack("<II", 4, value)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()
