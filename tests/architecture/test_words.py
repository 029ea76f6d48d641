import re
from collections.abc import Iterable

from tests.architecture.checkout import CODE, expect_none, text_files

REGISTRY = re.compile(r"python[h]osted|\b[p]ypi\.org|[n]pmjs\.|[c]rates\.io|proxy\.[g]olang", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(^|[^\w.-])/([w]ork|[f]arm)/\w|\.\./[s]hared|file:///\w")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")


def matches(pattern: re.Pattern[str], files: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{path}:{number} {line.strip()[:80]}"
        for path, text in files
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_package_registry() -> None:
    expect_none(matches(REGISTRY, text_files()))


def test_no_file_names_a_place_on_the_machine_it_was_written_on() -> None:
    expect_none(matches(MACHINE_PATH, text_files()))


def test_nothing_in_the_code_is_left_for_later() -> None:
    expect_none(matches(UNFINISHED, (file for file in text_files() if file[0].startswith(CODE))))


def test_unwanted_words_are_noticed_with_file_and_line() -> None:
    files = [
        ("tools/a.py", "x = 1\nraise NotImplemented" + "Error  # TO" + "DO"),
        ("README.md", "see https://py" + "pi.org/p or /wo" + "rk/main, not a/wo" + "rk/x"),
    ]

    found = [matches(pattern, files) for pattern in (UNFINISHED, REGISTRY, MACHINE_PATH)]

    assert [[line.partition(" ")[0] for line in lines] for lines in found] == [
        ["tools/a.py:2"],
        ["README.md:1"],
        ["README.md:1"],
    ]
