"""What the user has not saved in an editor, for the tools that read and change files.

The tools read and write the disk, because journal, recovery and rewinding depend on it. A read shows the unsaved
text instead, and a change of a file with unsaved text is refused. An editor only gives the text that it shows of a
file; this text is compared with the file here.
"""

import asyncio
import hashlib
from collections import OrderedDict
from pathlib import Path

from graph_agent.ports.toolbox import ReadBuffer
from tools.text import TextForm, decode, is_binary, to_newline

__all__ = ["UnsavedText"]

_LOOKS, _LOOK_AGAIN_S = 3, 0.2
"""An editor reloads a file some moments after it has changed on the disk."""
_MAX_BYTES = 8 * 1024 * 1024
"""Larger files are not asked about."""
_MAX_FILES, _MAX_VERSIONS = 1_000, 20


class UnsavedText:
    """Implements `tools.base.EditorBuffers` for one session."""

    def __init__(self, read_buffer: ReadBuffer) -> None:
        self._read_buffer = read_buffer
        self._versions: OrderedDict[Path, list[str]] = OrderedDict()
        """The digests of what each file held on the disk, so that a text which was not reloaded is known."""

    async def unsaved(self, path: Path, on_disk: bytes | None) -> bytes | None:
        """See the port."""
        text, form = ("", TextForm()) if on_disk is None else decode(on_disk)
        # Of a file in another encoding the editor may read other text.
        is_comparable = form.encoding == "utf-8" and form.errors == "strict"
        if not is_comparable or len(on_disk or b"") > _MAX_BYTES or is_binary(on_disk or b""):
            return None
        saved = _comparable(text)
        earlier = self._remember(path, _digest(saved))
        buffer = saved
        for look in range(_LOOKS):
            if look:
                await asyncio.sleep(_LOOK_AGAIN_S)
            given = await self._read_buffer(path)
            if given is None or (buffer := _comparable(given)) == saved or _digest(buffer) in earlier:
                return None
        ends = on_disk is None or text.endswith(("\n", "\r"))
        whole = f"{buffer}\n" if buffer and ends else buffer
        return form.encode(to_newline(whole, form.newline))

    def _remember(self, path: Path, digest: str) -> list[str]:
        """Note what a file holds on the disk; returns what it held before."""
        earlier = [one for one in self._versions.pop(path, []) if one != digest][-_MAX_VERSIONS:]
        self._versions[path] = [*earlier, digest]
        if len(self._versions) > _MAX_FILES:
            self._versions.popitem(last=False)
        return earlier


def _comparable(text: str) -> str:
    """A text without what editors do not keep: kinds of line endings, the last one of them, a byte order mark."""
    # JSON, which the text comes in, can hold half of a character, which no file can.
    whole = text.encode(errors="replace").decode()
    return to_newline(whole.removeprefix("\ufeff"), "\n").removesuffix("\n")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
