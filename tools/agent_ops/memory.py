"""Remembering facts for later conversations, as lines below one heading in the user's context file.

Each line that the tool writes ends with a comment that says so: all other lines are the user's own.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

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
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.file_ops.change import FileChange, plan_change, reconcile_file
from tools.files import Snapshot, read_snapshot, replace_file
from tools.paths import PathRefused, quoted_path, resolve, shown_path
from tools.running import run_in_thread
from tools.text import TextForm, decode, is_binary, to_newline

__all__ = ["HEADING", "Memory", "MemoryNote", "SaveMemoryArgs", "SaveMemoryTool", "forget_note", "parse_memory"]

HEADING = "## Agent Memories"

_MAX_BYTES = 1024 * 1024
_HEADING_LINE = re.compile(rf"^{re.escape(HEADING)}[ \t]*$", re.MULTILINE)
_NEXT_HEADING = re.compile(r"^#{1,2} ", re.MULTILINE)
_NOTE = re.compile(
    r"[-*] (?P<fact>.*?) <!-- saved by graph-agent(?:, thread (?P<thread>.*?))?"
    r"(?:, (?P<date>\d{4}-\d\d-\d\d) in (?P<folder>.*?))? -->[ \t]*"
)
_REMEMBERED = re.compile(r"^[-*] (.*?)(?: <!-- saved by graph-agent.*-->)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MemoryNote:
    """A line that the agent noted."""

    fact: str
    date: str
    """ISO date; empty where an earlier version did not write it."""
    folder: str
    """The workspace of the conversation; empty as above."""
    thread_id: str


class Memory(NamedTuple):
    """A context file by who wrote its lines."""

    user: str = ""
    """The text of the user, with the agent's lines left out."""
    notes: tuple[MemoryNote, ...] = ()
    """What the agent noted, in the order of the file."""


def parse_memory(text: str) -> Memory:
    """Tell the agent's lines from the user's: what does not end with the comment of the tool is the user's."""
    lines = to_newline(text, "\n").split("\n")
    notes = tuple(note for line in lines if (note := _as_note(line)))
    user = "\n".join(line for line in lines if not _as_note(line))
    return Memory((_without_empty_section(user) if notes else user).strip("\n"), notes)


def forget_note(
    memory_file: Path, *, number: int | None = None, threads: Collection[str] | None = None
) -> MemoryNote | None:
    """Remove a line of the agent and return it; None if there is no such line. No other line is changed.

    Args:
        memory_file: the user's CONTEXT.md.
        number: its place among the agent's lines, from 1; without it the newest one is removed.
        threads: the newest one of these threads; None: of all.

    Raises:
        PathRefused: the file cannot be read or written, or another program changed it at the same moment.
    """
    resolved = resolve(str(memory_file), workspace=memory_file.parent)
    if not os.path.lexists(resolved.path):
        return None
    with _exclusive(resolved.path.parent):
        before = read_snapshot(resolved, _MAX_BYTES)
        old, form = _decode(before)
        lines = to_newline(old or "", "\n").split("\n")
        places = [(place, note) for place, line in enumerate(lines) if (note := _as_note(line))]
        if number is not None:
            places = places[number - 1 : number] if number > 0 else []
        elif threads is not None:
            places = [(place, note) for place, note in places if note.thread_id in threads]
        if not places:
            return None
        place, forgotten = max(places, key=lambda found: (found[1].date, found[0]))
        text = _without_empty_section("\n".join((*lines[:place], *lines[place + 1 :])))
        data = form.encode(to_newline(text, form.newline))
        replace_file(before, data, temp_name=f".graph-agent-{os.getpid()}.tmp", new_mode=0o600)
    return forgotten


class SaveMemoryArgs(BaseModel):
    fact: str = Field(
        min_length=1,
        max_length=2_000,
        description="one fact that stays true and useful in other conversations",
    )


class SaveMemoryTool(BaseTool):
    name = "save_memory"
    description = ToolDescription(
        short="Remember one fact about the user or their preferences for all later conversations.",
        long="It is added to the user's own context file, once.",
        usage_notes=("Not for what concerns only the current work.",),
        examples=(ToolExample({"fact": "The user prefers pytest to unittest."}),),
        important=("Never save keys or passwords.",),
    )
    tags = ("memory", "write")
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
        return [PathTarget(shown_path(str(self._file())), "write")]

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
        metadata: dict[str, Any] = {"diff": asdict(change.diff)}
        path = change.diff.path
        if change.is_empty:
            return ToolResult("This is already remembered.", "already remembered", metadata=metadata)
        metadata["noted"] = _on_one_line(fact)
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
        old, form = _decode(before)
        if before.data is not None and old is not None:
            plain = to_newline(old, "\n")
            section = plain[slice(*_bounds(plain))]
            if _key(fact) in map(_key, _REMEMBERED.findall(section)):
                return plan_change(before, old, before.data, old)
        thread = f", thread {context.thread_id}" if context.thread_id else ""
        place = f", {datetime.now(UTC).date()} in {_on_one_line(str(context.workspace))}"
        line = f"- {_on_one_line(fact)} <!-- saved by graph-agent{thread}{place} -->"
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
            ToolErrorType.PERMISSION, f"{quoted_path(str(folder))} cannot be used for memories: {error.strerror}."
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _decode(before: Snapshot) -> tuple[str | None, TextForm]:
    """The text of the file, None if there is no file, and its encoding and line ends.

    Raises:
        PathRefused: it is not text in a Unicode encoding.
    """
    if before.data is None:
        return None, TextForm()
    text, form = decode(before.data)
    if is_binary(before.data) or not form.encoding.startswith("utf-"):
        raise PathRefused(
            ToolErrorType.VALIDATION,
            f"{quoted_path(before.resolved.given)} is not text in a Unicode encoding; it was not changed. "
            "Ask the user to save it as UTF-8.",
        )
    return text, form


def _as_note(line: str) -> MemoryNote | None:
    found = _NOTE.fullmatch(line)
    if found is None:
        return None
    return MemoryNote(*(found[name] or "" for name in ("fact", "date", "folder", "thread")))


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


def _without_empty_section(text: str) -> str:
    """The text without the heading of the section if nothing is below it."""
    heading = _HEADING_LINE.search(text)
    start, end = _bounds(text)
    if heading is None or text[start:end].strip():
        return text
    above, below = text[: heading.start()].rstrip("\n"), text[end:]
    return "\n\n".join(part for part in (above, below) if part) + ("" if below or not above else "\n")


def _with_line(text: str, line: str) -> str:
    """A text, whose line ends are plain, with one more line at the end of the section."""
    if _HEADING_LINE.search(text) is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{HEADING}\n\n{line}\n"
    _, end = _bounds(text)
    above, below = text[:end].rstrip("\n"), text[end:]
    opening = "\n\n" if above.endswith(HEADING) else "\n"
    return f"{above}{opening}{line}\n" + (f"\n{below}" if below else "")
