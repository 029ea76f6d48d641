"""Read and restore files of the workspace for a rewind."""

import stat
from collections.abc import Sequence
from pathlib import Path

from graph_agent.errors import StorageError
from graph_agent.ports import Blobs, FileImage, FileRestoration
from tools.files import FileVersion, restore_file, snapshot_at
from tools.paths import PathRefused, containing_root
from tools.running import run_in_thread

__all__ = ["RestorableFiles"]


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
