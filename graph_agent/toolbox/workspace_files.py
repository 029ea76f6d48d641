"""The files of the workspace beside the tools: those that a message mentions with `@`, and those a rewind restores.

A mentioned file is read like the model's own call, by the same rules. One whose read would need approval is not
added: a mention is no consent, for a message may have been pasted.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.errors import StorageError
from graph_agent.ports import Blobs, FileImage, FileRestoration, Outcome, Scope, Toolbox
from graph_agent.ports.toolbox import ExpandedMessage
from tools.files import FileVersion, restore_file, snapshot_at
from tools.paths import PathRefused, containing_root, given_path, resolve
from tools.running import run_in_thread

__all__ = ["FileMentions", "RestorableFiles"]

_MAX_FILES = 20
_MENTION = re.compile(r"(?<![^\s(\[{])@(?:\"([^\"\n]+)\"|([^\s\"'`<>|]+))")
_RANGE = re.compile(r"(.+?)(?::(\d+)(?:-(\d+))?|#L?(\d+)(?:-L?(\d+))?)")
_PUNCTUATION = ".,;:!?)]}"
_FILE_NAME = re.compile(
    r".+\.(?:"
    r"c|cfg|cpp|cs|css|csv|go|h|html|ini|ipynb|java|jpeg|jpg|js|json|jsx|kt|lock|log|md|mjs|pdf|php"
    r"|png|py|rb|rs|rst|sh|sql|svg|swift|tex|toml|ts|tsx|txt|vue|xml|yaml|yml"
    r")",
    re.IGNORECASE,
)
"""A word behind an @ that ends like this is more likely a file than a person, a package or a decorator."""


class _Mention(NamedTuple):
    path: str
    first: int = 0
    """Number of the first line; 0 for all of it."""
    last: int = 0
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class FileMentions:
    """Implements `graph_agent.ports.toolbox.Mentions`."""

    toolbox: Toolbox
    workspace: Path
    roots: Sequence[Path] = ()
    attached: frozenset[str] = frozenset()
    """Resolved files that the user named on the command line: a mention of one needs no other approval."""
    pasted: Path | None = None
    """The folder of images that the user pasted. It is among the agent's own files, which nothing else may read."""

    async def expand(self, text: str, scope: Scope) -> ExpandedMessage:
        """See the port."""
        if "@" not in text:
            return ExpandedMessage(text)
        mentions, notes = await run_in_thread(self._find, text)
        parts, images = [text], list[Any]()
        for mention in mentions:
            outcome = await self._read(mention, Scope(scope.thread_id, scope.mode, calls_in_message=len(mentions)))
            if isinstance(outcome, str):
                notes.append(f"@{mention.path} is not attached: {outcome}")
                continue
            parts.append(_as_element(mention, outcome.output))
            images += outcome.metadata.get("images") or ()
        return ExpandedMessage("\n\n".join(parts), tuple(images), tuple(notes))

    def _find(self, text: str) -> tuple[list[_Mention], list[str]]:
        """The mentioned files that exist, each once, and notes about mentions that clearly mean a missing one."""
        found: dict[_Mention, None] = {}
        notes: list[str] = []
        for quoted, bare in _MENTION.findall(text):
            for mention in _readings(quoted, bare):
                try:
                    path = resolve(given_path(mention.path), workspace=self.workspace, roots=tuple(self.roots)).path
                except PathRefused:
                    continue
                if os.path.lexists(path):
                    found[mention._replace(is_folder=path.is_dir())] = None
                    break
            else:
                if quoted or "/" in bare or _FILE_NAME.fullmatch(bare.rstrip(_PUNCTUATION)):
                    notes.append(f"@{quoted or bare.rstrip(_PUNCTUATION)} matches no file; it is sent as text")
        if len(found) > _MAX_FILES:
            notes.append(f"only the first {_MAX_FILES} of {len(found)} files are attached")
        return list(found)[:_MAX_FILES], notes

    def _is_pasted(self, paths: Sequence[str]) -> bool:
        return (
            self.pasted is not None and bool(paths) and all(Path(one).is_relative_to(self.pasted) for one in paths)
        )

    async def _read(self, mention: _Mention, scope: Scope) -> Outcome | str:
        """The result of the call that shows it, or why it is not shown."""
        tool, arguments = "read_file", dict[str, Any](file_path=mention.path)
        if mention.is_folder:
            tool, arguments = "ls", {"path": mention.path}
        elif mention.first:
            arguments |= {"offset": mention.first, "limit": mention.last - mention.first + 1}
        plan = await self.toolbox.prepare(tool, arguments, scope)
        is_approved = bool(plan.paths) and self.attached.issuperset(plan.paths)
        if plan.verdict == "ask" and not is_approved:
            return "reading it needs approval; the model can ask for it"
        if plan.verdict not in ("allow", "ask") and not self._is_pasted(plan.paths):
            return plan.reason.rstrip(".") or "it may not be read"
        call: Any = {"call_id": "", "tool_name": tool, "arguments": plan.arguments, "paths": list(plan.paths)}
        outcome = await self.toolbox.run(call, scope)
        return outcome if outcome.status == "success" else outcome.error or outcome.output


def _readings(quoted: str, bare: str) -> Iterator[_Mention]:
    """What may be meant, the likeliest first: a sentence continues behind a path, and a path may hold a colon."""
    if quoted:
        yield _Mention(quoted)
        return
    for text in dict.fromkeys((bare, bare.rstrip(_PUNCTUATION))):
        yield _Mention(text)
        if (lines := _RANGE.fullmatch(text)) is not None:
            first = int(lines[2] or lines[4])
            last = int(lines[3] or lines[5] or first)
            if 1 <= first <= last:
                yield _Mention(lines[1], first, last)


def _as_element(mention: _Mention, output: str) -> str:
    kind = "folder" if mention.is_folder else "file"
    lines = f' lines="{mention.first}-{mention.last}"' if mention.first else ""
    name = mention.path.replace('"', "")
    inner = output.replace(f"</{kind}", f"<\\/{kind}")
    return f'<{kind} path="{name}"{lines}>\n{inner}\n</{kind}>'


class RestorableFiles:
    """The port `WorkspaceFiles` over one workspace and the further folders of its thread."""

    def __init__(self, workspace: Path, blobs: Blobs, roots: Sequence[Path] = ()) -> None:
        self._workspace = workspace.resolve()
        self._roots = tuple(roots)
        self._blobs = blobs

    async def image(self, path: str) -> FileImage | str:
        """See the port."""
        return await run_in_thread(self._image, Path(path))

    async def restore_file(self, restoration: FileRestoration) -> str:
        """See the port."""
        return await run_in_thread(self._restore, restoration)

    def _image(self, path: Path) -> FileImage | str:
        try:
            now = snapshot_at(path, self._root_of(path))
        except PathRefused as refused:
            return str(refused)
        if now.data is None or now.status is None:
            return FileImage()
        return FileImage(now.sha256, self._blobs.put(now.data), stat.S_IMODE(now.status.st_mode))

    def _root_of(self, path: Path) -> Path:
        return containing_root((self._workspace, *self._roots), path) or self._workspace

    def _restore(self, wanted: FileRestoration) -> str:
        then = wanted.target
        try:
            data = None if then.blob is None else self._blobs.get(then.blob)
            former = FileVersion(data, then.mode, wanted.new_folder)
            path = Path(wanted.path)
            restore_file(path, self._root_of(path), former, expected=wanted.current.sha256)
        except (PathRefused, StorageError) as refused:
            return str(refused)
        return ""
