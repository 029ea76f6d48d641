import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.files import read_snapshot
from tools.paths import PathRefused, ResolvedPath, contains, find_program, open_directory, open_regular, resolve
from tools.result import ToolErrorType


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    workspace = tmp_path.resolve() / "proj"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "a.py").write_text("a")
    outside = tmp_path.resolve() / "proj-evil"
    outside.mkdir()
    (outside / "data.txt").write_text("secret")
    return workspace


def test_a_path_inside_is_inside_also_when_it_does_not_exist_yet(ws: Path) -> None:
    assert resolve("src/new/b.py", workspace=ws) == ResolvedPath(
        "src/new/b.py", ws / "src/new/b.py", inside=True, exposes_process=False
    )


@pytest.mark.parametrize("given", ["../proj-evil/data.txt", "{evil}/data.txt", "/etc/passwd", "src/../../x", "~/x"])
def test_paths_that_lead_outside_are_outside(ws: Path, given: str) -> None:
    found = resolve(given.replace("{evil}", f"{ws}-evil"), workspace=ws)

    assert not found.inside


def test_links_are_followed_to_where_they_really_lead(ws: Path) -> None:
    (ws / "one").symlink_to("two")
    (ws / "two").symlink_to(ws / "three")
    (ws / "three").symlink_to(f"{ws}-evil")
    (ws / "link_in").symlink_to("src")

    assert resolve("one/data.txt", workspace=ws).path == Path(f"{ws}-evil/data.txt")
    assert resolve("link_in/../src/a.py", workspace=ws) == ResolvedPath(
        "link_in/../src/a.py", ws / "src/a.py", inside=True, exposes_process=False
    )
    assert resolve("one/../x", workspace=ws).path == ws.parent / "x"


def test_a_workspace_reached_through_a_link_contains_both_spellings(ws: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(ws)

    assert resolve(str(tmp_path / "alias" / "src" / "a.py"), workspace=ws).inside


def test_another_spelling_of_the_same_folder_is_recognised_by_the_folder_itself(ws: Path) -> None:
    # A link stands for what a case-insensitive file system would do: another name of the same object.
    unresolved_spelling = ws.parent / "proj-evil" / ".." / "proj" / "src"

    assert contains(ws, unresolved_spelling)


def test_a_loop_of_links_is_refused(ws: Path) -> None:
    (ws / "a").symlink_to("b")
    (ws / "b").symlink_to("a")

    with pytest.raises(PathRefused, match="too many links"):
        resolve("a", workspace=ws)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("x" * 300, "too long"),
        ("a/" * 3000, "too long"),
        ("\ud800x", "no file name"),
    ],
)
def test_texts_that_are_no_paths_are_refused(ws: Path, given: str, message: str) -> None:
    with pytest.raises(PathRefused, match=message):
        resolve(given, workspace=ws)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path)[-90:] if len(str(path)) > 100 else str(path))


@pytest.mark.parametrize(
    ("make", "what"), [(_fifo, "a named pipe"), (_socket, "a socket"), (Path.mkdir, "a folder")]
)
def test_what_is_no_regular_file_is_refused_without_blocking(
    ws: Path, make: Callable[[Path], None], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    make(ws / "thing")
    began = time.monotonic()

    with pytest.raises(PathRefused, match=what), open_regular(resolve("thing", workspace=ws)):
        pass

    assert time.monotonic() - began < 1


def test_a_device_is_refused(ws: Path) -> None:
    with pytest.raises(PathRefused, match="a device"), open_regular(resolve("/dev/null", workspace=ws)):
        pass


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
@pytest.mark.parametrize(
    "given",
    [
        "/proc/self/environ",
        "/proc/self/mem",
        "/proc/self/maps",
        "/proc/thread-self/environ",
        "/proc/self/fd/0",
        "/dev/stdin",
        "/proc/self/root/proc/self/environ",
        "link/environ",
    ],
)
def test_the_insides_of_the_process_are_refused_by_every_way(ws: Path, given: str) -> None:
    (ws / "link").symlink_to("/proc/self")
    resolved = resolve(given, workspace=ws)

    with pytest.raises(PathRefused, match="of a process") as raised, open_regular(resolved):
        pass

    assert raised.value.kind is ToolErrorType.PERMISSION


def test_a_part_that_became_a_link_after_it_was_resolved_is_not_followed(ws: Path) -> None:
    resolved = resolve("src/a.py", workspace=ws)
    (ws / "src").rename(ws / "old")
    (ws / "src").symlink_to(f"{ws}-evil")

    with pytest.raises(PathRefused), open_regular(resolved):
        pass


def test_a_file_that_became_a_link_is_not_followed(ws: Path) -> None:
    resolved = resolve("src/a.py", workspace=ws)
    (ws / "src/a.py").unlink()
    (ws / "src/a.py").symlink_to(f"{ws}-evil/data.txt")

    with pytest.raises(PathRefused, match="link"):
        read_snapshot(resolved, 1000)


def test_a_missing_file_is_not_found(ws: Path) -> None:
    with pytest.raises(PathRefused) as raised, open_regular(resolve("src/none", workspace=ws)):
        pass

    assert raised.value.kind is ToolErrorType.NOT_FOUND
    assert raised.value.as_result().error == "'src/none' does not exist; list the folder with ls."


def test_a_file_as_a_folder_is_refused(ws: Path) -> None:
    with pytest.raises(PathRefused, match="not a folder"):
        resolve("src/a.py/x/y", workspace=ws)


def test_missing_folders_are_made_when_asked(ws: Path) -> None:
    with open_directory(ws / "x" / "y", create=True) as fd:
        os.mkdir("z", dir_fd=fd)

    assert (ws / "x" / "y" / "z").is_dir()


@pytest.mark.parametrize("entry", [".", "", "here", "./here"])
def test_a_program_in_the_folder_one_stands_in_is_never_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    for folder in (tmp_path, tmp_path / "here", tmp_path / "machine"):
        folder.mkdir(exist_ok=True)
        (folder / "tell").write_text("#!/bin/sh\n")
        (folder / "tell").chmod(0o755)
    monkeypatch.chdir(tmp_path)

    monkeypatch.setenv("PATH", entry)
    alone = find_program("tell")
    monkeypatch.setenv("PATH", os.pathsep.join((entry, str(tmp_path / "machine"))))

    assert (alone, find_program("tell")) == (None, str(tmp_path / "machine" / "tell"))
