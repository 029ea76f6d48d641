"""Leaving out files that cannot match, with ripgrep: those that lack a text which every match must hold.

Only an accelerator: what it keeps is searched by the same code that searches without it, so a missing, old or
failing ripgrep changes no result.
"""

import os
import re
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from tools.context import ToolContext
from tools.programs import find_program
from tools.walking import FoundFile, stop_if_cancelled

__all__ = ["certain_text", "holding", "ripgrep"]

_WORTH_A_PROCESS = 100
_FILES_AT_ONCE = 500
_TOKEN = re.compile(r"\\(?:.|$)|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_ \-=/<>:;,\"'!@%&]")
_NOT_JUDGED = re.compile(r"\||\(\?|\\[a-zA-Z0-9](?<![wWsSdDbBntrAzZ])")
"""Alternatives, flags and groups of every kind, and escapes that stand for other characters."""
_FLAGS = ("--no-config", "--no-messages", "--files-with-matches", "--null", "--text", "--fixed-strings")


def ripgrep() -> str | None:
    """The program of this installation, else the one on the path."""
    own = Path(sysconfig.get_path("scripts")) / "rg"
    return str(own) if own.is_file() else find_program("rg")


def certain_text(pattern: str, *, is_literal: bool) -> str:
    """The longest plain ASCII text that every match holds as far as a cautious look can tell; "" where none is."""
    if is_literal:
        return max(re.findall(r"[ -~]+", pattern), key=len, default="")
    if _NOT_JUDGED.search(pattern):
        return ""
    return max(_runs(pattern), key=len)


def _runs(pattern: str) -> list[str]:
    runs, depth = [""], 0
    for piece in _TOKEN.findall(pattern):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece in ("?", "*", "{"):
            # What stands before it may be absent.
            runs[-1] = runs[-1][:-1]
        if depth == 0 and _PLAIN.fullmatch(piece):
            runs[-1] += piece
        else:
            runs.append("")
        if piece == "{":
            depth += 1
        if piece == "}":
            depth -= 1
    return runs


def holding(text: str, files: Sequence[FoundFile], context: ToolContext) -> Sequence[FoundFile]:
    """The files that hold the text, or all of them where that cannot be told cheaply."""
    program = ripgrep()
    if program is None or not text or len(files) < _WORTH_A_PROCESS:
        return files
    kept: set[str] = set()
    for start in range(0, len(files), _FILES_AT_ONCE):
        paths = [str(file.path) for file in files[start : start + _FILES_AT_ONCE]]
        names = _named_by(program, text, paths, context)
        if names is None:
            return files
        kept |= names
    return [file for file in files if str(file.path) in kept]


def _named_by(program: str, text: str, paths: list[str], context: ToolContext) -> set[str] | None:
    command = [program, *_FLAGS, "-e", text, "--", *paths]
    try:
        running = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath}, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
    with running:
        try:
            output = _finished(running, context)
        finally:
            running.kill()
    # 2 tells of a file that could not be read: such a file must be counted by the search itself.
    return {os.fsdecode(name) for name in output.split(b"\0") if name} if running.returncode in (0, 1) else None


def _finished(running: subprocess.Popen[bytes], context: ToolContext) -> bytes:
    while True:
        stop_if_cancelled(context)
        try:
            return running.communicate(timeout=0.1)[0]
        except subprocess.TimeoutExpired:
            continue
