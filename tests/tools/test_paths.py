import os
import stat
import time
from pathlib import Path

import pytest

from tools.paths import PathRefused, ResolvedPath, contains, open_directory, open_regular, resolve
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


def test_other_spellings_of_the_workspace_are_recognised(ws: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(ws)
    # It stands for what a case-insensitive file system would do: another name of the same object.
    unresolved_spelling = ws.parent / "proj-evil" / ".." / "proj" / "src"

    assert resolve(str(tmp_path / "alias" / "src" / "a.py"), workspace=ws).inside
    assert contains(ws, unresolved_spelling)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("x" * 300, "too long"),
        ("a/" * 3000, "too long"),
        ("\ud800x", "no file name"),
        ("loop", "too many links"),
        ("src/a.py/x/y", "not a folder"),
    ],
    ids=["empty", "nul", "long-name", "long-path", "surrogate", "loop", "below-a-file"],
)
def test_texts_that_lead_nowhere_are_refused(ws: Path, given: str, message: str) -> None:
    (ws / "loop").symlink_to("pool")
    (ws / "pool").symlink_to("loop")

    with pytest.raises(PathRefused, match=message):
        resolve(given, workspace=ws)


@pytest.mark.parametrize(
    ("given", "what"),
    [("pipe", "a named pipe"), ("socket", "a socket"), ("src", "a folder"), ("/dev/null", "a device")],
)
def test_what_is_no_regular_file_is_refused_without_blocking(ws: Path, given: str, what: str) -> None:
    os.mkfifo(ws / "pipe")
    os.mknod(ws / "socket", stat.S_IFSOCK | 0o600)
    began = time.monotonic()

    with pytest.raises(PathRefused, match=what), open_regular(resolve(given, workspace=ws)):
        pass

    assert time.monotonic() - began < 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here")
@pytest.mark.parametrize(
    "given",
    [
        "/proc/self/environ", "/proc/self/mem", "/proc/self/maps", "/proc/thread-self/environ", "/proc/self/fd/0",
        "/dev/stdin", "/proc/self/root/proc/self/environ", "link/environ",
    ],
)  # fmt: skip
def test_the_insides_of_the_process_are_refused_by_every_way(ws: Path, given: str) -> None:
    (ws / "link").symlink_to("/proc/self")
    resolved = resolve(given, workspace=ws)

    with pytest.raises(PathRefused, match="of a process") as raised, open_regular(resolved):
        pass

    assert raised.value.kind is ToolErrorType.PERMISSION


@pytest.mark.parametrize(
    ("name", "target", "why"), [("src", "{}-evil", "folder"), ("src/a.py", "{}-evil/data.txt", "link")]
)
def test_a_part_that_became_a_link_after_it_was_resolved_is_not_followed(
    ws: Path, name: str, target: str, why: str
) -> None:
    resolved = resolve("src/a.py", workspace=ws)
    (ws / name).rename(ws / "old")
    (ws / name).symlink_to(target.format(ws))

    with pytest.raises(PathRefused, match=why), open_regular(resolved):
        pass


def test_a_missing_file_is_not_found(ws: Path) -> None:
    with pytest.raises(PathRefused) as raised, open_regular(resolve("src/none", workspace=ws)):
        pass

    assert raised.value.kind is ToolErrorType.NOT_FOUND
    assert raised.value.as_result().error == "'src/none' does not exist; list the folder with ls."


def test_missing_folders_are_made_when_asked(ws: Path) -> None:
    with open_directory(ws / "x" / "y", create=True) as fd:
        os.mkdir("z", dir_fd=fd)

    assert (ws / "x" / "y" / "z").is_dir()
