"""Draws docs/demo.svg: a run of `graph-agent demo` that scrolls like a terminal.

    python -m docs._generate.recording

It takes a quarter of a minute, so `make docs` leaves it out. What differs from run to run (ids, times, processes,
folders) is given stand-ins; a test holds the transcript inside the picture against what the demo prints.
"""

import hashlib
import os
import re
import sys
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path

import pexpect
import pyte

from docs._generate.terminal import STILL, draw, lines_of

__all__ = ["COLUMNS", "normalize", "picture", "play", "transcript_in"]

COLUMNS = 96
"""Width of the terminal it is played in; the demo cuts its tables to it."""
_ROWS = 30
_MOST_LINES = 600
_LINE_HEIGHT = 24.4
_ROOT = Path(__file__).parents[2]

_CALL = r"(?:call_|ai-)[0-9a-f]{32}"
_CHECKPOINT = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ID = re.compile(rf"{_CALL}|{_CHECKPOINT}|\b[0-9a-f]{{8}}\b")
_STEADY: tuple[tuple[str, str], ...] = (
    (r"\S*graph-agent-demo-\w{8}", "/tmp/graph-agent-demo-k3v8x2qp"),  # noqa: S108 - only a text
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-11-28 10:00:00"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "2026-11-28T10:00:00.000Z"),
    # A column of ages is as wide as they are, and what follows it is cut accordingly.
    (r"WHEN +", "WHEN      "),
    (r"(?:\d+ (?:s|min) ago|just now) +", "just now  "),
    (r"\d+ (?:s|min) ago", "just now"),
    (r"Your turn:\s+\S*graph-agent", "Your turn: graph-agent"),
    (r" \(outcome \w*…", " (outcome …"),
    (r"success \d+\.\d s", "success 0.0 s"),
    (r"(kill -9|pid) \d+", r"\1 4100"),
    (r'"by": "[0-9a-f]+', '"by": "4100'),
    (r"call_[0-9a-f]+…", "call_…"),
    # Where no sandbox ends the command with its agent, these two tell and end it.
    (r"  still running: .*\n", ""),
    (r" --end-processes$", ""),
)


def play() -> str:
    """The output of the demo, which answers its own questions."""
    path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"  # where hints find the program
    demo = pexpect.spawn(
        sys.executable,
        ["-m", "graph_agent", "demo", "--yes"],
        env={**os.environ, "PATH": path, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)},
        dimensions=(_ROWS, COLUMNS),
        encoding="utf-8",
        timeout=120,
    )
    demo.expect(pexpect.EOF)
    demo.close()
    if demo.exitstatus != 0:
        raise ChildProcessError(f"the demo ended with {demo.exitstatus}:\n{demo.before}")
    return str(demo.before).replace("\r\n", "\n")


def normalize(written: str) -> str:
    """The text with fixed values for everything that differs between runs."""
    for pattern, stand_in in _STEADY:
        written = re.sub(pattern, stand_in, written, flags=re.MULTILINE)
    return _ID.sub(_numbered(), written)


def picture(written: str) -> str:
    """The SVG file, as it should stand on disk, of steadied text."""
    screen = pyte.Screen(COLUMNS, _MOST_LINES)
    pyte.Stream(screen).feed(written.replace("\n", "\r\n"))
    lines = lines_of(screen)
    drawn = draw(lines, COLUMNS, _template([line.plain for line in lines]))
    # A line needs no frame of its own: nothing is wider than the terminal.
    drawn = re.sub(r' clip-path="url\(#[\w-]+-line-\d+\)"', "", drawn)
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def transcript_in(drawn: str) -> str:
    """What the picture shows, as text."""
    found = re.search(r"<desc>\n(.*?)</desc>", drawn, re.DOTALL)
    return unescape(found[1]) if found else ""


def _numbered() -> Callable[[re.Match[str]], str]:
    """Gives each id a stand-in by the order in which ids appear; a short form gets the end of its long one."""
    order: dict[str, int] = {}

    def stand_in(found: re.Match[str]) -> str:
        number = order.setdefault(found[0][-8:], len(order))
        digest = hashlib.sha256(str(number).encode()).hexdigest()
        if found[0].startswith(("call_", "ai-")):
            return f"{found[0][:-32]}{digest[8:32]}{digest[:8]}"
        return f"1f1ec000-0000-6000-8000-0000{digest[:8]}" if "-" in found[0] else digest[:8]

    return stand_in


def _template(lines: list[str]) -> str:
    """A window of some rows on all lines, which move through it as they were typed and read."""
    height = _ROWS * _LINE_HEIGHT
    moves, seconds = _moves(lines)
    still = next(number for number, line in enumerate(lines) if line.startswith("[r]etry")) + 1
    frames = "".join(f"{100 * at / seconds:.2f}% {{{{ transform: {_shift(row)} }}}}\n" for at, row in moves)
    style = (
        f".reel {{{{ transform: {_shift(still)} }}}}\n"
        "@media (prefers-reduced-motion: no-preference) {{\n"
        f".reel {{{{ animation: reel {seconds:.0f}s step-end infinite }}}}\n"
        f"@keyframes reel {{{{\n{frames}}}}}\n}}}}\n"
    )
    text = escape("\n".join(lines), quote=False).replace("{", "{{").replace("}", "}}")
    return (
        STILL.replace("{width} {height}", f"{{width}} {height + 60:.1f}")
        .replace("    <style>", f"    <title>graph-agent demo</title>\n<desc>\n{text}\n</desc>\n    <style>{style}")
        .replace('height="{terminal_height}"', f'height="{height:.1f}"')
        .replace("    {lines}\n", "")
        .replace("{chrome}", _frame(height + 58))
        .replace("{backgrounds}\n", '<g class="reel">\n{backgrounds}\n')
        .replace("</svg>", "</g></svg>")
    )


def _frame(height: float) -> str:
    return (
        f'<rect fill="#292929" stroke="#ffffff59" x="1" y="1" width="99.8%" height="{height:.1f}" rx="8"/>'
        '<circle cx="26" cy="22" r="7" fill="#ff5f57"/><circle cx="48" cy="22" r="7" fill="#febc2e"/>'
        '<circle cx="70" cy="22" r="7" fill="#28c840"/>'
    )


def _shift(row: int) -> str:
    """Puts the line with this number, counted from one, at the foot of the window."""
    return f"translateY({(_ROWS - row) * _LINE_HEIGHT:.1f}px)"


def _moves(lines: list[str]) -> tuple[list[tuple[float, int]], float]:
    """When which line is the last one shown, and how long it takes to see all of them."""
    first = lines.index("", 1)
    moves, now = [], 0.0
    for number, line in enumerate(lines[first:], first + 1):
        moves.append((now, number))
        now += _seconds(line)
    return moves, now + 4.0


def _seconds(line: str) -> float:
    """How long a line stands before the next one comes."""
    if line.startswith("$ ") or " > " in line:
        return 1.2
    return 0.08 if line else 0.5


if __name__ == "__main__":
    (_ROOT / "docs" / "demo.svg").write_text(picture(normalize(play())), encoding="utf-8")
