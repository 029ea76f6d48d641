"""Retired words stay retired: in identifiers, fields, tables, help, messages and documentation. No file names a
package registry, a place on the machine it was written on, or something left for later.

`docs/glossary.md` has the words to use instead.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from tests.architecture.checkout import CODE, Module, code_modules, expect_none, modules_under, text_files

WORDS = re.compile(
    r"life|lives|afresh|purse|desk|foretold|aside|wholeness|descent|lineage|errand|household|"
    r"surroundings|told|tell|tells|telling|rests|resting|mend|mended|mends|glance|jot|"
    r"tightening|scrub|lenient|patience|dialect|arrival|arriving|shrinking|settle|settles|"
    r"settling|offering|undone|workshop|foretell"
)
"""Parts of identifiers and of file names."""

IDENTIFIERS = re.compile(
    r"broken_off|at_rest|goes_on|going_on|go_on|wants_answer|run_token|told_shells|args_digests|"
    r"rest_status|wind_up|let_be|held_back|taken_back|left_behind|summed_up|going_back|taken_up"
)
"""Whole identifiers, fields and string values."""

PHRASES = re.compile(
    r"\b(?:"
    r"broken off|broke off|goes on with|going on with|at rest\b|comes? to rest|is told|are told by|what judges|"
    r"held against|"
    r"last life|next life|later life|dead life|of yours|amiss|summed up|take(?:s|n)? back|let it count|"
    r"taken up again|"
    r"hand(?:s|ed)? over the|nobody asked|whoever works|in the way of a retry|stands? in the way"
    r")\b",
    re.IGNORECASE,
)
"""Phrases of messages, help, docstrings, comments and documentation."""

REGISTRY = re.compile(r"python[h]osted|\b[p]ypi\.org|[n]pmjs\.|[c]rates\.io|proxy\.[g]olang", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(^|[^\w.-])/([w]ork|[f]arm)/\w|\.\./[s]hared|file:///\w")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")

ALLOWED = (
    "time_travel.py: cannot_be_undone",
    "compaction.py: told",
    "gguf.py: tell",
    "tool_policy.py: tell_model",
)
"""A JSON field, a key of stored conversations, the method of a file, and a value that others declare."""


def identifiers(module: Module) -> Iterator[tuple[int, str]]:
    """Names that are defined or used, and string values that look like one."""
    for node in ast.walk(module.tree):
        line = getattr(node, "lineno", 0)
        for attribute in ("name", "id", "attr", "arg"):
            value = getattr(node, attribute, None)
            if isinstance(value, str):
                yield line, value
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield line, node.value


def parts(identifier: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)}


def retired_identifiers(modules: Iterable[Module]) -> Iterator[str]:
    for module in modules:
        for part in re.split(r"[/_.]", module.path):
            if WORDS.fullmatch(part):
                yield f"{module.path}: {part} in the file name"
        for line, name in identifiers(module):
            if IDENTIFIERS.fullmatch(name.lower()) or any(map(WORDS.fullmatch, parts(name))):
                yield f"{module.path}:{line} {name}"


def retired_phrases(files: Iterable[tuple[str, str]]) -> Iterator[str]:
    for path, text in files:
        for number, line in enumerate(text.splitlines(), 1):
            if found := PHRASES.search(line):
                yield f"{path}:{number} {found[0]!r}"


def matches(pattern: re.Pattern[str], files: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{path}:{number} {line.strip()[:80]}"
        for path, text in files
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def prose() -> Iterator[tuple[str, str]]:
    """The product's sources and everything written for readers."""
    for path, text in text_files():
        if path.startswith(("graph_agent/", "tools/", "policy/", "docs/")) or path.endswith(".md"):
            yield path, text


def test_retired_words_do_not_come_back() -> None:
    found = [*retired_identifiers([*code_modules(), *modules_under("docs/_generate")]), *retired_phrases(prose())]

    expect_none(line for line in found if not re.sub(r":\d+ ", ": ", line).endswith(ALLOWED))


def test_retired_words_are_noticed_in_names_strings_and_phrases() -> None:
    module = Module("tools/told.py", "def tell_user(lives: int) -> str:\n    return 'broken_off'\n\nuntold = 1\n")

    assert sorted(retired_identifiers([module])) == [
        "tools/told.py: told in the file name",
        "tools/told.py:1 lives",
        "tools/told.py:1 tell_user",
        "tools/told.py:2 broken_off",
    ]
    assert list(retired_phrases([("a.md", "fine\nIt was broken off.\n")])) == ["a.md:2 'broken off'"]


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
