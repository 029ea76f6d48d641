"""Remembering facts for later conversations, as lines below one heading in the user's context file."""

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    FileEffect,
    InterruptedCall,
    PathTarget,
    Preview,
    Reconciliation,
    Target,
    ToolContext,
    ToolErrorType,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.file_ops.change import FileChange, plan_change, reconcile_file
from tools.files import read_snapshot, replace_file
from tools.paths import PathRefused, resolve
from tools.running import run_in_thread
from tools.text import TextForm, decode, is_binary, to_newline

__all__ = ["HEADING", "SaveMemoryArgs", "SaveMemoryTool"]

HEADING = "## Agent Memories"

_MAX_BYTES = 1024 * 1024
_HEADING_LINE = re.compile(rf"^{re.escape(HEADING)}[ \t]*$", re.MULTILINE)
_NEXT_HEADING = re.compile(r"^#{1,2} ", re.MULTILINE)
_REMEMBERED = re.compile(r"^[-*] (.*?)(?: <!-- saved by graph-agent.*-->)?$", re.MULTILINE)


class SaveMemoryArgs(BaseModel):
    fact: str = Field(
        min_length=1,
        max_length=2_000,
        description="one fact that stays true and useful in other conversations",
    )


class SaveMemoryTool(BaseTool):
    name = "save_memory"
    description = (
        "Remember one fact about the user or their preferences for all later conversations. Not for what concerns "
        "only the current work, and never for keys or passwords."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.WRITE
    category = "agent"
    args_schema = SaveMemoryArgs

    def __init__(self, *, workspace: str | Path | None = None, memory_file: Path | None = None) -> None:
        """`memory_file` is the user's CONTEXT.md; None means its usual path."""
        self.workspace = workspace
        self.memory_file = memory_file

    def validate(self, args: Mapping[str, Any]) -> str | None:
        return None if args["fact"].strip() else "fact: it is blank; say in one sentence what to remember."

    def targets(self, args: Mapping[str, Any]) -> list[Target]:  # noqa: ARG002 - always the same file
        return [PathTarget(str(self._file()), "write")]

    def display_call(self, args: Mapping[str, Any]) -> str:
        return f"remember: {_on_one_line(args['fact'])}"

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:
        """The diff. The file it was computed from is not recorded: another fact saved meanwhile does not matter."""
        change = await run_in_thread(self._plan, args["fact"], self.context_or_default(context))
        return Preview("diff", change.diff.unified or "(already remembered)\n")

    async def predict_effect(
        self, args: Mapping[str, Any], context: ToolContext | None = None
    ) -> FileEffect | None:
        """The file before, and the digest after."""
        try:
            change = await run_in_thread(self._plan, args["fact"], self.context_or_default(context))
        except PathRefused:
            return None
        return FileEffect(change.diff.path, change.before.data, change.diff.after_sha256)

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """Compare the file with the prediction; if it differs, look for the fact itself."""
        found = await run_in_thread(reconcile_file, call)
        if found.verdict != "something_else":
            return found
        try:
            change = await run_in_thread(self._plan, call.arguments["fact"], self.context_or_default(None))
        except PathRefused:
            return found
        if change.is_empty:
            return Reconciliation("already_applied", f"{change.diff.path} contains the fact.")
        return Reconciliation(
            "not_applied", f"{change.diff.path} was changed by others and does not contain the fact."
        )

    async def execute(self, *, fact: str, context: ToolContext | None = None) -> ToolResult:
        if problem := self.validate({"fact": fact}):
            return failure(ToolErrorType.VALIDATION, problem)
        try:
            change = await run_in_thread(self._save, fact, self.context_or_default(context))
        except PathRefused as refused:
            return refused.as_result()
        metadata, path = {"diff": asdict(change.diff)}, change.diff.path
        if change.is_empty:
            return ToolResult("This is already remembered.", "already remembered", metadata=metadata)
        return ToolResult(f"Remembered in {path}.", f"remembered in {path}", metadata=metadata)

    def _file(self) -> Path:
        if self.memory_file is not None:
            return self.memory_file
        if home := os.environ.get("GRAPH_AGENT_HOME"):
            return Path(home).expanduser().absolute() / "CONTEXT.md"
        configured = os.environ.get("XDG_CONFIG_HOME", "")
        root = Path(configured) if Path(configured).is_absolute() else Path.home() / ".config"
        return root / "graph-agent" / "CONTEXT.md"

    def _plan(self, fact: str, context: ToolContext) -> FileChange:
        """The change that adds the fact; an empty one if it is there."""
        before = read_snapshot(resolve(str(self._file()), workspace=context.workspace), _MAX_BYTES)
        old, form = None, TextForm()
        if before.data is not None:
            old, form = decode(before.data)
            if is_binary(before.data) or not form.encoding.startswith("utf-"):
                raise PathRefused(
                    ToolErrorType.VALIDATION,
                    f"{before.resolved.given!r} is not text in a Unicode encoding; nothing was added to it. "
                    "Ask the user to save it as UTF-8.",
                )
            plain = to_newline(old, "\n")
            section = plain[slice(*_bounds(plain))]
            if _key(fact) in map(_key, _REMEMBERED.findall(section)):
                return plan_change(before, old, before.data, old)
        source = f", thread {context.thread_id}" if context.thread_id else ""
        line = f"- {_on_one_line(fact)} <!-- saved by graph-agent{source} -->"
        new = to_newline(_with_line(to_newline(old or "", "\n"), line), form.newline)
        return plan_change(before, old, form.encode(new), new)

    def _save(self, fact: str, context: ToolContext) -> FileChange:
        owner = hashlib.sha256(f"{context.thread_id}\0{context.call_id}".encode()).hexdigest()[:16]
        folder = resolve(str(self._file()), workspace=context.workspace).path.parent
        with _exclusive(folder):
            change = self._plan(fact, context)
            if not change.is_empty:
                temp_name = f".graph-agent-{owner}.tmp"
                replace_file(change.before, change.after, temp_name=temp_name, new_mode=0o600)
        return change


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Lock the folder against other processes, so that none overwrites another's fact."""
    try:
        for part in (*reversed(folder.parents), folder):
            part.mkdir(mode=0o700, exist_ok=True)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise PathRefused(
            ToolErrorType.PERMISSION, f"{str(folder)!r} cannot be used for memories: {error.strerror}."
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _on_one_line(fact: str) -> str:
    # A comment mark inside a fact would hide what follows it, or end ours early.
    return " ".join(fact.split()).replace("<!--", "<! --").replace("-->", "-- >")


def _key(fact: str) -> str:
    return _on_one_line(fact).casefold().rstrip(".")


def _bounds(text: str) -> tuple[int, int]:
    heading = _HEADING_LINE.search(text)
    if heading is None:
        return len(text), len(text)
    following = _NEXT_HEADING.search(text, heading.end())
    return heading.end(), following.start() if following else len(text)


def _with_line(text: str, line: str) -> str:
    """A text, whose line ends are plain, with one more line at the end of the section."""
    if _HEADING_LINE.search(text) is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{HEADING}\n\n{line}\n"
    _, end = _bounds(text)
    above, below = text[:end].rstrip("\n"), text[end:]
    opening = "\n\n" if above.endswith(HEADING) else "\n"
    return f"{above}{opening}{line}\n" + (f"\n{below}" if below else "")
