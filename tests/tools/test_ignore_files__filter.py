import pytest

from tools.ignore_files import NO_FILTER

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
    assert NO_FILTER.with_lines([line]).among(_NAMES) == suspects


def test_lines_that_add_nothing_leave_the_same_suspicion() -> None:
    known = NO_FILTER.with_lines(["*.log"])

    assert known.with_lines(["# only words", "*.log"]) is known
