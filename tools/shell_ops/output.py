"""Raw output of a command made readable: no escape sequences, no overwritten progress lines; any bytes survive."""

import re

__all__ = ["clean", "incomplete_end"]

_ESCAPES = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # control sequences
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # titles, links and other strings up to their end
    r"|[ -/]*[0-~]"  # two-character sequences
    r")"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def clean(raw: bytes) -> str:
    """The text a person would have read in the end; undecodable bytes become replacement characters."""
    text = _ESCAPES.sub("", raw.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def incomplete_end(raw: bytes) -> int:
    """How many bytes at the end may be the beginning of a character that goes on in the next piece."""
    for back in range(1, min(4, len(raw) + 1)):
        byte = raw[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if needed > back else 0
    return 0


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state]
    return states[-1] if states else ""
