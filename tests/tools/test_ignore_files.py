from pathlib import Path

import pytest

from tools.ignore_files import NO_FILTER, IgnoreRules, is_hidden


@pytest.mark.parametrize(
    ("path", "is_folder", "ignored"),
    [
        ("a.log", False, True),
        ("keep.log", False, False),
        ("build", True, True),
        ("build", False, False),
        ("sub/only.txt", False, True),
        ("sub/x.log", False, False),
        ("other/only.txt", False, False),
    ],
)
def test_the_nearest_ignore_file_that_speaks_decides(
    tmp_path: Path, path: str, is_folder: bool, ignored: bool
) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".gitignore").write_text("only.txt\n!*.log\n")

    assert IgnoreRules(tmp_path).ignores(tmp_path / path, is_folder=is_folder) is ignored


@pytest.mark.parametrize(
    ("inner", "ignored"),
    [
        (b"!sub/\n", True),
        (b"!*/\n", True),
        (b"!x.log\n", False),
        (b"!*\n", False),
        (b"\xef\xbb\xbf!x.log\r\n", False),
        ("\u2028!x.log\n".encode(), True),
    ],
)
def test_letting_a_folder_pass_says_nothing_of_its_files_and_lines_end_as_for_git(
    tmp_path: Path, inner: bytes, ignored: bool
) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a" / "sub").mkdir(parents=True)
    (tmp_path / "a" / ".gitignore").write_bytes(inner)

    assert IgnoreRules(tmp_path).ignores(tmp_path / "a" / "sub" / "x.log", is_folder=False) is ignored


def test_nothing_outside_the_root_is_ignored_and_names_with_a_dot_are_hidden(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*\n")

    assert not IgnoreRules(tmp_path / "ws").ignores(tmp_path / "x", is_folder=False)
    assert (is_hidden(".env"), is_hidden("a.env")) == (True, False)


_NAMES = ["a.log", "build", "notes.txt", "x.tar.gz", "odd\nname.log", ".env", "cat", "café"]


@pytest.mark.parametrize(
    ("line", "suspects"),
    [
        ("*.log", ["a.log", "odd\nname.log"]),
        ("/build/", ["build"]),
        ("deep/down/build", ["build"]),
        ("build/**", ["build"]),
        ("**/build", ["build"]),
        ("*.tar.gz", ["x.tar.gz"]),
        ("c?t", ["cat"]),
        ("odd*log", ["odd\nname.log"]),
        ("c[a]t", ["cat", "café"]),
        ("*", _NAMES),
        ("**", _NAMES),
        (" spaced", _NAMES),
        ("\\#x", _NAMES),
        ("# build", []),
        ("!build", []),
        ("", []),
    ],
)
def test_a_name_is_a_suspect_where_the_last_part_of_a_pattern_may_speak_of_it(
    line: str, suspects: list[str]
) -> None:
    found = NO_FILTER.with_lines([line])

    assert (found.among(_NAMES), found.with_lines(["# only words", line])) == (suspects, found)
