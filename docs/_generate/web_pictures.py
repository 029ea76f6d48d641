"""Takes the pictures of docs/web.md: every page of `graph-agent web`, wide and on a phone; needs Chromium, Pillow.

    python -m docs._generate.web_pictures [FOLDER]

Not compared by the checks, because ids, times and fonts differ from run to run.
"""

import re
import subprocess
import sys
import tempfile
import time
from html import unescape
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from docs._generate.page_picture import play, program

__all__ = ["start_browser", "take"]

_ROOT = Path(__file__).parents[2]
_OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars"),
)
_SIZES = (("", 1280, 900, "light"), ("-phone", 390, 844, "dark"))
"""Suffix of the name, width, height and colours."""
_PAGES = {
    "inbox": "/",
    "rule": r"/always\?[^\"]*effect=deny",
    "edit": r"/edit\?[^\"]*",
    "threads": "/threads",
    "transcript": "/thread?id=receipt",
    "state": "/state?id=receipt",
    "difference": "/diff?id=receipt&a={6}&b={0}",
    "rewind": "/rewind?id=receipt&checkpoint={20}&scope=both",
    "calls": "/calls",
    "call": r"/call\?[^\"]*",
    "files": "/files?id=receipt",
}
"""By name of the picture: the address, or what it looks like; see `_find`."""
_NOTES = "create stock.md with # Stock\n\nApples and pears are counted on Fridays.\n" + "One crate holds 20.\n" * 30


def start_browser(playwright: object) -> Browser:
    """The Chromium of the system, which may run as root."""
    return playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(_OPTIONS))  # type: ignore[attr-defined, no-any-return]  # the type is of a context manager


def take(folder: Path, target: Path) -> None:
    """Play threads, serve them, and take every picture, in few colours."""
    play(folder)
    program(folder, "run", _NOTES, "--thread", "stock").wait()
    _interrupt(folder)
    server = program(folder, "web", "--port", "0", output=subprocess.PIPE)
    try:
        _photograph(server, folder, target)
    finally:
        server.kill()
        server.wait()


def _photograph(server: "subprocess.Popen[str]", folder: Path, target: Path) -> None:
    with sync_playwright() as playwright:
        assert server.stdout is not None  # noqa: S101 - it was asked for
        first = server.stdout.readline().split()[1]
        browser = start_browser(playwright)
        for suffix, width, height, colours in _SIZES:
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=colours)  # type: ignore[arg-type]  # one of the words that it takes
            page.goto(first)
            for name, place in _PAGES.items():
                page.goto(f"{first.partition('/?')[0]}{_find(page, place)}")
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name  # noqa: S101 - else it is cut
                raw = folder / f"{name}{suffix}.png"
                page.screenshot(path=raw)
                with Image.open(raw) as picture:
                    picture.convert("RGB").quantize(96).save(target / raw.name, optimize=True)
        browser.close()


def _interrupt(folder: Path) -> None:
    """A thread whose process is killed in the middle of a call."""
    running = program(
        folder, "run", "run touch begun; sleep 60", "--thread", "nightly", "--mode", "bypassPermissions"
    )
    while not (folder / "shop" / "begun").exists():
        time.sleep(0.1)
    running.kill()
    running.wait()


def _find(page: Page, place: str) -> str:
    """An address, with ids of checkpoints from the newest on; or the first one like it in the inbox or calls."""
    origin = "/".join(page.url.split("/")[:3])
    if "{" in place:
        page.goto(f"{origin}/state?id=receipt")
        return place.format(*re.findall(r'name="a" value="([^"]+)"', page.content()))
    for where in ("/", "/calls") if "[" in place else ():
        page.goto(f"{origin}{where}")
        if (found := re.search(f'"({place})"', page.content())) is not None:
            return unescape(found[1])
    return place


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        take(Path(scratch), Path(sys.argv[1]) if sys.argv[1:] else _ROOT / "docs" / "web")
