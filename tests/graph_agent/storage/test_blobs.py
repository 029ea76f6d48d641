import os
import zlib
from pathlib import Path

import pytest

from graph_agent.errors import StorageError
from graph_agent.storage.blobs import FileBlobs
from tests.graph_agent.storage.sqlite.looking import private_modes


def _only_file(folder: Path) -> Path:
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return path


class TestBlobs:
    @pytest.mark.parametrize("data", [b"", b"text", bytes(range(256)) * 1000])
    def test_bytes_come_back_as_they_were(self, blobs: FileBlobs, data: bytes) -> None:
        reference = blobs.put(data)

        assert reference.startswith("blob:sha256:")
        assert blobs.get(reference) == data

    @pytest.mark.parametrize(
        "reference", ["", "blob:sha256:../../etc/passwd", f"blob:sha256:{'f' * 63}", f"blob:sha256:{'F' * 64}"]
    )
    def test_a_malformed_reference_is_refused(self, blobs: FileBlobs, reference: str) -> None:
        with pytest.raises(StorageError, match="is not a reference to a blob"):
            blobs.get(reference)

    def test_an_unknown_reference_is_refused(self, blobs: FileBlobs) -> None:
        with pytest.raises(StorageError, match="is missing"):
            blobs.get(f"blob:sha256:{'f' * 64}")

    def test_spools_of_different_calls_are_different_files_in_a_folder_that_exists(self, blobs: FileBlobs) -> None:
        keys = [("t", "c", 1), ("t", "c", 2), ("t", "d", 1), ("u", "c", 1), ("..", "../../x", 1)]

        paths = [blobs.spool(*key) for key in keys]

        assert len(set(paths)) == len(keys)
        assert all(path.parent.is_dir() and not path.exists() for path in paths)


def test_the_same_bytes_are_kept_once_and_compressed(blobs: FileBlobs, tmp_path: Path) -> None:
    references = {blobs.put(b"x" * 100_000) for _ in range(3)}

    assert len(references) == 1
    assert _only_file(tmp_path).stat().st_size < 1_000


def test_blobs_and_spools_are_private_and_stay_inside_the_folder(blobs: FileBlobs, tmp_path: Path) -> None:
    before = os.umask(0)
    blobs.put(b"secret")
    spool = blobs.spool("../t", "/etc/passwd", 1)
    os.umask(before)

    assert spool.is_relative_to(tmp_path / "blobs" / "spool")
    assert set(private_modes(tmp_path).values()) == {"0o700", "0o600"}


@pytest.mark.parametrize("content", [b"no zlib", zlib.compress(b"other bytes"), b""])
def test_a_blob_whose_content_changed_is_refused(blobs: FileBlobs, tmp_path: Path, content: bytes) -> None:
    reference = blobs.put(b"what was stored")
    _only_file(tmp_path).write_bytes(content)

    with pytest.raises(StorageError, match="no longer holds what was stored"):
        blobs.get(reference)


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("in the way")

    with pytest.raises(StorageError, match="cannot use"):
        FileBlobs(tmp_path / "blobs").put(b"data")
