from pathlib import Path

from graph_agent.ports import FileImage, FileRestoration
from graph_agent.storage.blobs import FileBlobs
from graph_agent.toolbox.file_restore import RestorableFiles
from tools.files import sha256_hex


async def test_a_file_is_restored_from_its_image(tmp_path: Path) -> None:
    workspace, blobs = tmp_path / "ws", FileBlobs(tmp_path / "blobs")
    workspace.mkdir()
    file = workspace / "a.txt"
    file.write_bytes(b"one")
    file.chmod(0o640)
    files = RestorableFiles(workspace, blobs)

    before = await files.image(str(file))
    file.write_bytes(b"two")
    after = await files.image(str(file))

    assert isinstance(before, FileImage)
    assert isinstance(after, FileImage)
    assert (before.sha256, before.mode, blobs.get(str(before.blob))) == (sha256_hex(b"one"), 0o640, b"one")
    assert await files.restore_file(FileRestoration(str(file), after, before)) == ""
    assert file.read_bytes() == b"one"


async def test_a_file_that_cannot_be_restored_is_explained(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    files = RestorableFiles(workspace, FileBlobs(tmp_path / "blobs"))
    gone = FileRestoration(str(workspace / "a"), FileImage(), FileImage("d", f"blob:sha256:{'0' * 64}"))

    assert "outside the workspace" in str(await files.image(str(tmp_path / "elsewhere")))
    assert "is missing" in await files.restore_file(gone)
    assert await files.image(str(workspace / "nothing")) == FileImage()


async def test_files_of_further_folders_are_restored_too(tmp_path: Path) -> None:
    for name in ("ws", "lib"):
        (tmp_path / name).mkdir()
    file = tmp_path / "lib" / "a.txt"
    file.write_bytes(b"one")
    files = RestorableFiles(tmp_path / "ws", FileBlobs(tmp_path / "blobs"), (tmp_path / "lib",))

    before = await files.image(str(file))
    file.write_bytes(b"two")
    after = await files.image(str(file))
    assert isinstance(before, FileImage)
    assert isinstance(after, FileImage)

    assert (await files.restore_file(FileRestoration(str(file), after, before)), file.read_bytes()) == ("", b"one")
