"""Takes docs/export.png: the page of a short thread as a browser shows it. Needs Chromium and Pillow.

    python -m docs._generate.page_picture

Not compared by the checks, because ids, times and fonts differ from run to run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

__all__ = ["photograph", "play", "program"]

_ROOT = Path(__file__).parents[2]
_THREAD = "receipt"
_SUM = "sum(prices) by sum(price * float(line.split()[1]) for price, line in zip(prices, lines))"
_TURNS = (
    ("run python3 prices.py", ("--approve", "all")),
    (f"replace {_SUM} in prices.py", ("--approve", "all")),
    ("run rm basket.txt", ("--reject", "all", "--reason", "It is needed.")),
    ("run python3 prices.py", ()),
)
_SIZE = "900,2000"


def play(folder: Path) -> Path:
    """The page of a thread on the sample workspace: what ran, what was changed, refused, and still waits."""
    workspace, page = folder / "shop", folder / "receipt.html"
    shutil.copytree(_ROOT / "docs" / "sample", workspace)
    for prompt, answer in _TURNS:
        program(folder, "run", prompt, "--thread", _THREAD).wait()
        if answer:
            program(folder, "run", "--resume", _THREAD, *answer).wait()
    program(folder, "threads", "rename", _THREAD, "The receipt counts quantities").wait()
    program(folder, "threads", "export", _THREAD, "--format", "html", "--output", str(page)).wait()
    return page


def program(folder: Path, *arguments: str, output: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
    """The program at work in the sample workspace."""
    path = f"{os.environ['PATH']}{os.pathsep}{Path(sys.executable).parent}"  # where hints find the program
    environment = {**os.environ, "PATH": path, "GRAPH_AGENT_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "graph_agent", *arguments]
    return subprocess.Popen(
        command, cwd=folder / "shop", env=environment, stdout=output, stderr=subprocess.DEVNULL, text=True
    )


def photograph(page: Path, target: Path) -> None:
    """The upper part of the page, in few colours."""
    raw = page.with_suffix(".png")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={_SIZE}"]
    subprocess.run(["chromium", *options, f"--screenshot={raw}", page.as_uri()], check=True, capture_output=True)
    with Image.open(raw) as picture:
        picture.convert("RGB").quantize(128).save(target, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        photograph(play(Path(scratch)), _ROOT / "docs" / "export.png")
