"""The syntax tree of a shell command, as shfmt reads it."""

import json
import subprocess
import sysconfig
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from policy import Unparsable
from tools.programs import find_program

__all__ = ["find_shfmt", "parse_bash"]

_TIMEOUT_S = 1.0
_MAX_BYTES = 8192
_MAX_NESTED = 400
"""Opening signs in a text: each may cost the parser, and the reader of its tree, a level."""


def find_shfmt() -> str | None:
    """The program that came with the package, else the one on PATH."""
    own = Path(sysconfig.get_path("scripts")) / "shfmt"
    return str(own) if own.is_file() else find_program("shfmt")


def parse_bash(text: str) -> Mapping[str, Any]:
    """The syntax tree of a text.

    Raises:
        Unparsable: it is no bash, too big, takes too long, or there is no shfmt.
    """
    if len(text.encode("utf-8", "replace")) > _MAX_BYTES:
        raise Unparsable(f"it is longer than {_MAX_BYTES} bytes")
    if sum(map(text.count, "({`")) > _MAX_NESTED:
        raise Unparsable(f"it opens more than {_MAX_NESTED} parentheses, braces or backticks")
    return _run_shfmt(text)


@lru_cache(maxsize=256)
def _run_shfmt(text: str) -> Mapping[str, Any]:
    program = find_shfmt()
    if program is None:
        raise Unparsable("shfmt, which reads shell commands, is not installed")
    try:
        done = subprocess.run(
            [program, "--to-json", "--language-dialect=bash"],
            input=text.encode(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        tree = json.loads(done.stdout) if done.returncode == 0 else None
    except subprocess.TimeoutExpired as error:
        raise Unparsable("it takes too long to read") from error
    except RecursionError as error:
        raise Unparsable("it is nested too deeply") from error
    except (OSError, ValueError) as error:
        raise Unparsable(f"shfmt cannot read it: {error}") from error
    if not isinstance(tree, dict):
        why = done.stderr.decode(errors="replace").strip() or "nothing was read"
        raise Unparsable(f"it is no valid bash: {why}")
    return tree
