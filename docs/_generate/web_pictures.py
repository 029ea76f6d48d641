"""Takes the pictures of docs/web.md: pages of `graph-agent web` in a real browser. Needs Chromium and Pillow.

    python -m docs._generate.web_pictures

Not compared by the checks, because ids, times and fonts differ from run to run.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from docs._generate.page_picture import play

__all__ = ["start_browser", "take"]

_ROOT = Path(__file__).parents[2]
_OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars"),
)
_PICTURES = (
    ("web-inbox", "/", 900, 620, "light"),
    ("web-state", "/state?id=receipt", 900, 900, "light"),
    ("web-phone", "/thread?id=receipt", 390, 844, "dark"),
)
"""Name, page, width, height and colours."""


def start_browser(playwright: object) -> Browser:
    """The Chromium of the system, which may run as root."""
    return playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(_OPTIONS))  # type: ignore[attr-defined, no-any-return]  # the type is of a context manager


def take(folder: Path) -> None:
    """Play a thread, serve it, and take every picture, in few colours."""
    play(folder)
    database = folder / "home" / "data" / "graph-agent.db"
    command = [sys.executable, "-m", "graph_agent", "web", "--port", "0", "--db", str(database)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None  # noqa: S101 - it was asked for
        first = server.stdout.readline().split()[1]
        with sync_playwright() as playwright:
            browser = start_browser(playwright)
            for name, path, width, height, colours in _PICTURES:
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)  # type: ignore[arg-type]  # one of the words that it takes
                page.goto(first)
                page.goto(f"{first.partition('/?')[0]}{path}")
                page.wait_for_function("document.getElementById('connection').textContent === 'live'")
                raw = folder / f"{name}.png"
                page.screenshot(path=raw)
                with Image.open(raw) as picture:
                    picture.convert("RGB").quantize(64).save(_ROOT / "docs" / f"{name}.png", optimize=True)
            browser.close()
        server.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        take(Path(scratch))
