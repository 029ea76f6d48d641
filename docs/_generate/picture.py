"""Draws docs/session.svg: a short chat as the program really shows it, played in a pseudo-terminal.

    python -m docs._generate.picture

Not compared by the checks, because ids and times differ from run to run.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pexpect
import pyte

from docs._generate.terminal import draw, lines_of

__all__ = ["play"]

_COLUMNS, _ROWS = 96, 48
_ROOT = Path(__file__).parents[2]
_PROMPT = "list the files, then create hello.txt saying hi"


def play(folder: Path) -> pyte.Screen:
    """The screen at the end of a chat on the sample workspace: a read, an approved change, the ledger."""
    workspace = folder / "shop"
    shutil.copytree(_ROOT / "docs" / "sample", workspace)
    screen = pyte.Screen(_COLUMNS, _ROWS)
    stream = pyte.ByteStream(screen)
    environment = {**os.environ, "GRAPH_AGENT_HOME": str(folder / "home"), "TERM": "xterm-256color"}
    chat = pexpect.spawn(
        sys.executable,
        ["-m", "graph_agent", "chat", "--thread", "shop"],
        cwd=str(workspace),
        env=environment,
        dimensions=(_ROWS, _COLUMNS),
    )
    for keys, wanted in ((f"{_PROMPT}\r", "[y]es"), ("y\r", "> "), ("/calls\r", "success")):
        _until(chat, stream, screen, "> ", quiet=1.5)
        chat.send(keys)
        _until(chat, stream, screen, wanted, quiet=1.5)
    chat.close(force=True)
    return screen


def _until(
    chat: "pexpect.spawn[str]", stream: pyte.ByteStream, screen: pyte.Screen, wanted: str, quiet: float
) -> None:
    """Read until the text stands on the screen and nothing more has come for a while."""
    deadline, last = time.monotonic() + 30, time.monotonic()
    while time.monotonic() < deadline:
        try:
            stream.feed(_read(chat))
            last = time.monotonic()
        except pexpect.TIMEOUT:
            if time.monotonic() - last > quiet and any(wanted in line for line in screen.display):
                return
    raise TimeoutError(f"{wanted!r} did not appear")


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
