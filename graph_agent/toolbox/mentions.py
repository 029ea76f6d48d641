"""Puts the files into a message that it names with `@`: read as by the model's own call, judged by the same rules.

What would ask is not put in: that a message names it is no consent, for a message may have been pasted.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.ports import Outcome, PreparedCall, Scope, Toolbox
from graph_agent.ports.toolbox import ExpandedMessage
from tools.paths import PathRefused, resolve
from tools.running import run_in_thread

__all__ = ["FileMentions"]

_MOST = 20
"""Files one message may bring."""
_MENTION = re.compile(r"(?<![^\s(\[{])@(?:\"([^\"\n]+)\"|([^\s\"'`<>|]+))")
_RANGE = re.compile(r"(.+?)(?::(\d+)(?:-(\d+))?|#L?(\d+)(?:-L?(\d+))?)")
_PUNCTUATION = ".,;:!?)]}"


class _Named(NamedTuple):
    path: str
    first: int = 0
    """Number of the first line; 0 for all of it."""
    last: int = 0
    is_folder: bool = False

    @property
    def call(self) -> tuple[str, dict[str, Any]]:
        """Tool and arguments that show it."""
        if self.is_folder:
            return "ls", {"path": self.path}
        lines = {"offset": self.first, "limit": self.last - self.first + 1} if self.first else {}
        return "read_file", {"file_path": self.path, **lines}


@dataclass(frozen=True, slots=True)
class FileMentions:
    """Implements `graph_agent.ports.toolbox.Mentions`."""

    toolbox: Toolbox
    workspace: Path
    roots: Sequence[Path] = ()

    async def expand(self, text: str, scope: Scope) -> ExpandedMessage:
        """See the port."""
        if "@" not in text:
            return ExpandedMessage(text)
        named, notes = await run_in_thread(self._named, text)
        parts, images = [text], list[Any]()
        for one in named:
            outcome = await self._read(one, Scope(scope.thread_id, scope.mode, calls_in_message=len(named)))
            if isinstance(outcome, str):
                notes.append(f"@{one.path} is not put into the message: {outcome}")
                continue
            parts.append(_shown(one, outcome.output))
            images += outcome.metadata.get("images") or ()
        return ExpandedMessage("\n\n".join(parts), tuple(images), tuple(notes))

    async def _read(self, named: _Named, scope: Scope) -> Outcome | str:
        """What is shown of it, or why nothing is."""
        tool, arguments = named.call
        plan = await self.toolbox.prepare(tool, arguments, scope)
        if plan.verdict != "allow":
            return _refusal(plan)
        call: Any = {"call_id": "", "tool_name": tool, "arguments": plan.arguments, "paths": list(plan.paths)}
        outcome = await self.toolbox.run(call, scope)
        return outcome if outcome.status == "success" else outcome.error or outcome.output

    def _named(self, text: str) -> tuple[list[_Named], list[str]]:
        """What there is of what the text names, each once, and what was meant to be there."""
        found: dict[_Named, None] = {}
        notes: list[str] = []
        for quoted, bare in _MENTION.findall(text):
            named = next(filter(None, map(self._found, _readings(quoted, bare))), None)
            if named is not None:
                found[named] = None
            elif quoted or "/" in bare:
                notes.append(f"@{quoted or bare} names no file here; it is sent as it stands")
        if len(found) > _MOST:
            notes.append(f"only the first {_MOST} of {len(found)} files are put into the message")
        return list(found)[:_MOST], notes

    def _found(self, named: _Named) -> _Named | None:
        try:
            path = resolve(named.path, workspace=self.workspace, roots=tuple(self.roots)).path
        except PathRefused:
            return None
        if not os.path.lexists(path):
            return None
        return named._replace(is_folder=path.is_dir())


def _readings(quoted: str, bare: str) -> Iterator[_Named]:
    """What may be meant, the likeliest first: a sentence goes on behind a path, and a path may hold a colon."""
    if quoted:
        yield _Named(quoted)
        return
    for text in dict.fromkeys((bare, bare.rstrip(_PUNCTUATION))):
        yield _Named(text)
        if (lines := _RANGE.fullmatch(text)) is not None:
            first = int(lines[2] or lines[4])
            last = int(lines[3] or lines[5] or first)
            if 1 <= first <= last:
                yield _Named(lines[1], first, last)


def _refusal(plan: PreparedCall) -> str:
    if plan.verdict == "ask":
        return "reading it asks first; the model can ask for it"
    return plan.reason.rstrip(".") or "it may not be read"


def _shown(named: _Named, output: str) -> str:
    kind = "folder" if named.is_folder else "file"
    lines = f' lines="{named.first}-{named.last}"' if named.first else ""
    name = named.path.replace('"', "")
    inner = output.replace(f"</{kind}", f"<\\/{kind}")
    return f'<{kind} path="{name}"{lines}>\n{inner}\n</{kind}>'
