"""Files of the workspace as a rewind sees and restores them, over the workshop's own hands."""

import stat
from pathlib import Path

from graph_agent.errors import StorageError
from graph_agent.ports import Blobs, FileImage, Restoration
from tools.blocking import in_thread
from tools.paths import PathRefused
from tools.restoring import Former, look_again, put_back

__all__ = ["RestorableFiles"]


class RestorableFiles:
    """The port `WorkspaceFiles` over one workspace."""

    def __init__(self, workspace: Path, blobs: Blobs) -> None:
        self._workspace = workspace.resolve()
        self._blobs = blobs

    async def image(self, path: str) -> FileImage | str:
        """See the port."""
        return await in_thread(self._image, Path(path))

    async def put_back(self, restoration: Restoration) -> str:
        """See the port."""
        return await in_thread(self._put_back, restoration)

    def _image(self, path: Path) -> FileImage | str:
        try:
            now = look_again(path, self._workspace)
        except PathRefused as refused:
            return str(refused)
        if now.data is None or now.status is None:
            return FileImage()
        return FileImage(now.sha256, self._blobs.put(now.data), stat.S_IMODE(now.status.st_mode))

    def _put_back(self, wanted: Restoration) -> str:
        then = wanted.then
        try:
            data = None if then.blob is None else self._blobs.get(then.blob)
            former = Former(data, then.mode, wanted.new_folder)
            put_back(Path(wanted.path), self._workspace, former, expected=wanted.now.sha256)
        except (PathRefused, StorageError) as refused:
            return str(refused)
        return ""
