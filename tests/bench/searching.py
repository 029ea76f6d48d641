"""Tools that look through a hundred thousand files, against ripgrep on the same tree."""

import asyncio
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bench.figures import Figure, Row
from tests.bench.ground import Ground
from tests.bench.timing import pairs, seconds
from tools.file_ops.glob import GlobTool
from tools.file_ops.grep import GrepTool
from tools.file_ops.grep_engine import find_ripgrep

__all__ = ["ROWS"]


def _grep(ground: Ground) -> Iterator[Figure]:
    tool = GrepTool(workspace=ground.tree)
    for pattern in ("needle", r"need(le|ing) s\w+", r"(?i)NEEDLE stands"):
        ours, reference = pairs(
            partial(_seconds, tool, pattern=pattern), partial(_rg_s, ground.tree, "-n", pattern), ground.runs
        )
        yield Figure(f"grep '{pattern}', {ground.files} files", ours, "s", 1.3, reference, "rg")


def _glob(ground: Ground) -> Iterator[Figure]:
    tool = GlobTool(workspace=ground.tree)
    names = partial(_rg_s, ground.tree, "--files")
    for pattern, target in (("**/file05.py", 2.0), ("**/*", 5.0)):
        ours, reference = pairs(partial(_seconds, tool, pattern=pattern), names, ground.runs)
        yield Figure(f"glob {pattern}, {ground.files} files", ours, "s", target, reference, "rg --files")


def _seconds(tool: GrepTool | GlobTool, *, pattern: str) -> float:
    return seconds(lambda: asyncio.run(tool.execute(pattern=pattern)))


def _rg_s(tree: Path, *arguments: str) -> float:
    program = find_ripgrep()
    if program is None:
        raise RuntimeError("there is no rg to compare with; it comes with the project's dependencies")
    return seconds(lambda: subprocess.run([program, *arguments, "."], cwd=tree, check=True, capture_output=True))


ROWS = (Row("grep", _grep), Row("glob", _glob))
