"""What a command had written when it was broken off, made readable. Knows the spool file, not whose it is."""

from pathlib import Path

from tools.shell_ops.output import clean

__all__ = ["readable_end"]

_BYTES = 4_000
"""How much is kept: it goes into the record, to the person who decides, and to the model."""
_CONTINUES = range(0x80, 0xC0)
"""Bytes that cannot begin a character."""


def readable_end(spool: Path) -> str:
    """The end of the spool without escape sequences; empty where there is none, or it cannot be read."""
    try:
        with spool.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _BYTES))
            raw = file.read()
    except OSError:
        return ""
    if size > _BYTES:
        raw = raw[next((at for at, byte in enumerate(raw[:4]) if byte not in _CONTINUES), 0) :]
    return clean(raw).strip("\n")
