"""Draws docs/session.svg: a short chat as the program really shows it, played in a pseudo-terminal.

    python -m docs._generate.picture

Not compared by the checks, because ids and times differ from run to run.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from io import StringIO
from itertools import groupby
from pathlib import Path

import pexpect
import pyte
from pyte.screens import Char
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.text import Text

__all__ = ["draw", "play"]

_COLUMNS, _ROWS = 96, 48
_ROOT = Path(__file__).parents[2]
_PROMPT = "list the files, then create hello.txt saying hi"
_DIM = {"brown": "yellow", "default": None}


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


def draw(screen: pyte.Screen) -> str:
    """The screen as an SVG picture."""
    console = Console(record=True, width=_COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    lines = [_line(screen.buffer[row]) for row in range(screen.lines)]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    for line in lines:
        console.print(line, no_wrap=True, overflow="crop")
    # The template names fonts on a server; a picture of ours loads nothing from elsewhere.
    own = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="graph-agent", code_format=own)


def _line(cells: dict[int, Char]) -> Text:
    line = Text()
    for style, group in groupby((cells[column] for column in range(_COLUMNS)), key=_style):
        line.append("".join(cell.data for cell in group), style)
    line.rstrip()
    return line


def _style(cell: Char) -> Style:
    colour = _DIM.get(cell.fg, cell.fg if cell.fg.isalpha() else f"#{cell.fg}")
    return Style(color=colour, bold=cell.bold, reverse=cell.reverse)


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
    with tempfile.TemporaryDirectory() as folder:
        (_ROOT / "docs" / "session.svg").write_text(draw(play(Path(folder))), encoding="utf-8")
