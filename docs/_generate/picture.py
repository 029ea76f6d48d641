"""Draws docs/session.svg: a short chat, played in a pseudo-terminal.

    python -m docs._generate.picture

A test compares the picture with what the chat shows now, except for what differs from run to run.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from html import unescape
from pathlib import Path

import pexpect
import pyte

from docs._generate.terminal import draw, lines_of

__all__ = ["normalize", "play", "text_in"]

_COLUMNS, _ROWS = 80, 24
_QUIET_SECONDS = 0.3
_ROOT = Path(__file__).parents[2]
_PROMPT = "list the files, then create hello.txt saying hi"


_STEPS = (
    (f"{_PROMPT}\r", ("sandbox", ">")),
    ("y\r", ("y run",)),
    ("/calls\r", ("Created hello.txt", ">")),
    ("", ("SUMMARY", ">")),
)
"""What is typed, and the texts that must be on the screen before; a line that is only `>` is a prompt."""


def play(folder: Path) -> pyte.Screen:
    """The screen at the end of a chat on the sample workspace: a read, an approved change, the call log."""
    workspace = folder / "shop"
    shutil.copytree(_ROOT / "docs" / "sample", workspace)
    screen = pyte.Screen(_COLUMNS, _ROWS)
    stream = pyte.ByteStream(screen)
    path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"  # where hints find the program
    environment = {**os.environ, "PATH": path, "GRAPH_AGENT_HOME": str(folder / "home"), "TERM": "xterm-256color"}
    chat = pexpect.spawn(
        sys.executable,
        ["-m", "graph_agent", "chat", "--thread", "shop"],
        cwd=str(workspace),
        env=environment,
        dimensions=(_ROWS, _COLUMNS),
    )
    for keys, wanted in _STEPS:
        _until(chat, stream, screen, wanted)
        chat.send(keys)
    chat.close(force=True)
    return screen


def normalize(lines: Iterable[str], folder: Path) -> str:
    """The text without blanks and without what differs between runs or machines."""
    text = "".join(line.replace(str(folder), "/tmp/demo") for line in lines)  # noqa: S108 - where the picture is made
    text = re.sub(r"\s|─|│", "", text.partition("offline mode, no model · ")[0])
    return re.sub(r"call_[0-9a-f]{32}|[0-9a-f]{8}(?=success)|\d+sago|justnow|\d\.\ds", "*", text)


def text_in(picture: str) -> list[str]:
    """What a picture shows, in the order of its lines, without its title."""
    _title, *pieces = re.findall(r"<text class=[^>]*>(.*?)</text>", picture)
    return [unescape(piece).replace("\xa0", " ") for piece in pieces]


def _until(chat: "pexpect.spawn[str]", stream: pyte.ByteStream, screen: pyte.Screen, wanted: Sequence[str]) -> None:
    """Read until all texts are on the screen and no output has come for a while."""
    deadline, last = time.monotonic() + 30, time.monotonic()
    while time.monotonic() < deadline:
        try:
            stream.feed(_read(chat))
            last = time.monotonic()
        except pexpect.TIMEOUT:
            if time.monotonic() - last > _QUIET_SECONDS and all(_is_shown(screen, one) for one in wanted):
                return
    raise TimeoutError(f"{wanted!r} did not appear")


def _is_shown(screen: pyte.Screen, wanted: str) -> bool:
    return any(line.strip() == wanted or (wanted != ">" and wanted in line) for line in screen.display)


def _read(chat: "pexpect.spawn[str]") -> bytes:
    piece: bytes | str = chat.read_nonblocking(65536, timeout=0.1)
    return piece.encode() if isinstance(piece, str) else piece


if __name__ == "__main__":
    place = Path(tempfile.gettempdir()) / "demo"  # the same in every picture
    place.mkdir()
    try:
        picture = draw(lines_of(play(place)), _COLUMNS)
        (_ROOT / "docs" / "session.svg").write_text(picture, encoding="utf-8")
    finally:
        shutil.rmtree(place)
