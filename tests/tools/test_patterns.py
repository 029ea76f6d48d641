import time

import pytest

from tools.patterns import (
    BadGlob,
    BadPattern,
    GlobPattern,
    RootedPattern,
    compile_pattern,
    find_spans,
    root_pattern,
)


def test_matches_come_in_order_and_borders_are_those_of_lines() -> None:
    # Repetitions side by side are not taken for nested ones.
    wide = r"\d{1,999999}(a{1000}|[]{9]{1000})b{50000}\{99999999\}"

    assert list(find_spans(compile_pattern("^a.$"), "ab\ncd\nae")) == [(0, 2), (6, 8)]
    assert compile_pattern(wide).pattern == wide


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        *((pattern, "is not a valid regular expression: .+") for pattern in ("foo(", "[z-a]", "*")),
        *(
            (pattern, "repeats too often")
            for pattern in ("a{99999999}", "(?:[)]{1000}){1000}", "((\\({99}){99}b){99}")
        ),
        ("x{9" + "9" * 50 + "}", "repeats too often|is not a valid"),
    ],
)
def test_a_pattern_that_is_none_or_would_take_all_memory_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(BadPattern, match=why):
        compile_pattern(pattern)


def test_a_pattern_that_runs_away_is_stopped() -> None:
    began = time.monotonic()

    with pytest.raises(BadPattern, match=r"was stopped after 0.2 seconds"):
        list(find_spans(compile_pattern(r"(a|aa)+$"), "a" * 80 + "!", seconds=0.2))

    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("./*.py", "a.py", True),
        ("./*.py", "deep/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("**/*.py", "a.py", True),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/**", "src/x/y", True),
        ("src/", "src/x/y", True),
        ("*.{ts,tsx}", "x/a.tsx", True),
        ("*.{ts,tsx}", "a.js", False),
        ("{a,b{c,d}}.txt", "bd.txt", True),
        ("{a}.txt", "{a}.txt", True),
        ("a?.txt", "ab.txt", True),
        ("a?.txt", "a/.txt", False),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("[^ab].txt", "c.txt", True),
        ("[]].txt", "].txt", True),
        ("app/[id]/*.tsx", "app/[id]/page.tsx", True),
        ("app/[...all]/*.tsx", "app/[...all]/page.tsx", True),
        ("src//a.py", "src/a.py", True),
        (r"\*.txt", "*.txt", True),
        (r"\*.txt", "a.txt", False),
        ("a.b", "axb", False),
        ("x\n*", "x\ny", True),
    ],
)
def test_a_pattern_matches_whole_relative_paths(pattern: str, path: str, is_match: bool) -> None:
    assert GlobPattern(pattern).matches(path) is is_match


@pytest.mark.parametrize("pattern", ["", " ", "a/../b", "[z-a]", "{a,b}" * 9])
def test_what_is_no_pattern_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(BadGlob, match=r"\S{3}"):
        GlobPattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "entry", "is_named"),
    [
        (".github/**/*.yml", ".github", True),
        ("build/*", "build", True),
        (".env*", ".env.local", True),
        ("**/*.yml", ".github", False),
        ("*", ".hidden", False),
    ],
)
def test_a_part_without_wildcards_names_an_entry_and_a_dotted_part_names_dot_files(
    pattern: str,
    entry: str,
    is_named: bool,
) -> None:
    assert GlobPattern(pattern).names(entry) is is_named


@pytest.mark.parametrize(
    ("folder", "pattern", "expected"),
    [
        (".", "src/*.py", RootedPattern(".", "src/*.py")),
        (".", "/etc/*.conf", RootedPattern("/etc", "./*.conf")),
        (".", "/*.conf", RootedPattern("/", "./*.conf")),
        (".", "~/notes/**/*.md", RootedPattern("~/notes", "./**/*.md")),
        (".", "../other/*.py", RootedPattern("../other", "./*.py")),
        ("sub/", "../*.py", RootedPattern("sub/..", "./*.py")),
    ],
)
def test_the_place_in_a_pattern_becomes_the_folder_to_search(
    folder: str, pattern: str, expected: RootedPattern
) -> None:
    assert root_pattern(folder, pattern) == expected
