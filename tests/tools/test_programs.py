import os
import stat
from pathlib import Path

import pytest

from tools import programs
from tools.programs import exclude_folders, find_program, missing_reason, path_folders, program_words, trusted_path


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_excluded", set())


def _program(folder: Path, name: str = "tell") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


def _set_path(monkeypatch: pytest.MonkeyPatch, *entries: "Path | str") -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, entries)))


@pytest.mark.parametrize("entry", [".", "", "here", "./here"])
def test_a_program_in_the_folder_one_stands_in_is_never_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    here = tmp_path / "stand"
    for folder in (here, here / "here", tmp_path / "machine"):
        _program(folder)
    monkeypatch.chdir(here)

    _set_path(monkeypatch, entry)
    alone = find_program("tell")
    _set_path(monkeypatch, entry, tmp_path / "machine")

    assert (alone, find_program("tell")) == (None, str(tmp_path / "machine" / "tell"))


_EXPOSED = {
    "in a folder that commands may write": ("writable/bin", "", ""),
    "in the current folder": ("here/bin", "", ""),
    "through a link to a writable folder": ("link", "link -> writable/bin", ""),
    "a link to a program in a writable folder": ("own", "own/tell -> writable/bin/tell", ""),
    "in a writable folder under another name": ("own/../writable/bin", "", ""),
    "in a folder that everybody may write": ("open", "", "open 0o777"),
    "in a folder that everybody may add to": ("open", "", "open 0o1777"),
    "below a folder that everybody may change": ("outer/bin", "", "outer 0o777"),
    "a program that everybody may write": ("loose", "", "loose/tell 0o757"),
    "in a folder of another group": ("shared", "", "shared 0o775 other"),
    "a program of another group": ("shared", "", "shared/tell 0o775 other"),
}
_KEPT = {
    "an own folder": ("own", "", ""),
    "an own folder that one's own group may write": ("own", "", "own 0o775"),
    "below a folder that everybody may only add to": ("outer/bin", "", "outer 0o1777"),
    "through a link to an own folder": ("link", "link -> own", ""),
}


@pytest.mark.parametrize("case", [*_EXPOSED, *_KEPT])
def test_a_program_that_others_may_have_written_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    entry, link, mode = (_EXPOSED | _KEPT)[case]
    for name in ("writable/bin", "here/bin", "own", "open", "outer/bin", "loose", "shared", "last"):
        _program(tmp_path / name)
    if link:
        name, _, target = link.partition(" -> ")
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).symlink_to(tmp_path / target)
    if mode:
        name, bits, *group = mode.split()
        if group:
            if os.geteuid() != 0:
                pytest.skip("NOT TESTED: giving a folder to another group, which root alone can do")
            # What root owns was given to that group by whoever administers the machine.
            os.chown(tmp_path / name, 65534, 65534)
        (tmp_path / name).chmod(int(bits, 8))
    monkeypatch.chdir(tmp_path / "here")
    exclude_folders([tmp_path / "writable"])
    _set_path(monkeypatch, tmp_path / entry, tmp_path / "last")

    found, alone = find_program("tell"), find_program("tell", str(tmp_path / entry))

    is_exposed = case in _EXPOSED
    first = str(tmp_path / entry / "tell")
    assert (found, alone) == ((str(tmp_path / "last" / "tell"), None) if is_exposed else (first, first))
    expected = f"{first} is not used, because commands or other users may write there"
    assert missing_reason("tell", str(tmp_path / entry)) == (expected if is_exposed else "not found")


def test_a_program_is_looked_up_once_and_again_when_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = _program(tmp_path / "second")
    _set_path(monkeypatch, tmp_path / "first", tmp_path / "second")

    before = find_program("tell")
    first = _program(tmp_path / "first")
    meanwhile = find_program("tell")
    second.unlink()

    assert (before, meanwhile, find_program("tell")) == (str(second), str(second), str(first))


def test_a_folder_that_becomes_writable_for_commands_is_excluded_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(tmp_path / "bin")
    _set_path(monkeypatch, tmp_path / "bin", "/usr/bin")

    before = (find_program("tell"), trusted_path())
    outside = find_program("tell", outside=(tmp_path,))
    exclude_folders([tmp_path])

    assert (before, outside) == ((str(program), f"{tmp_path}/bin:/usr/bin"), None)
    assert (find_program("tell"), trusted_path()) == (None, "/usr/bin")


def test_a_path_that_the_user_wrote_is_used_as_it_is(tmp_path: Path) -> None:
    program = _program(tmp_path / "bin")
    exclude_folders([tmp_path])

    assert find_program(str(program)) == str(program)
    assert find_program(str(tmp_path / "none")) is None
    assert program_words([str(program), "--wait"]) == [str(program), "--wait"]


def test_a_command_line_without_a_trusted_program_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path / "bin")
    exclude_folders([tmp_path])
    _set_path(monkeypatch, tmp_path / "bin")

    with pytest.raises(FileNotFoundError, match="bin/tell is not used, because commands"):
        program_words(["tell", "x"])
    with pytest.raises(ValueError, match="empty"):
        program_words([])


def test_a_root_folder_as_workspace_excludes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    exclude_folders([Path("/")])
    monkeypatch.chdir("/")

    assert find_program("sh", "/usr/bin:/bin") in ("/usr/bin/sh", "/bin/sh")


def test_the_folders_of_path_are_named_from_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_path(monkeypatch, ".", "", "node_modules/.bin", tmp_path / "x" / "..", "/usr/bin", "/usr/bin/")

    assert path_folders(tmp_path) == (tmp_path / "node_modules" / ".bin", Path("/usr/bin"))
    assert stat.S_ISDIR(Path("/usr/bin").stat().st_mode)
