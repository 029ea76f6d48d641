"""Retired words stay retired: in identifiers, fields, tables, help, messages and documentation.

`docs/glossary.md` has the words to use instead.
"""

import ast
import re
from collections.abc import Iterable, Iterator

from tests.architecture.checkout import Module, code_modules, expect_none, modules_under, text_files

WORDS = frozenset(
    [
        "life",
        "lives",
        "afresh",
        "purse",
        "desk",
        "foretold",
        "aside",
        "wholeness",
        "descent",
        "lineage",
        "errand",
        "household",
        "surroundings",
        "told",
        "tell",
        "tells",
        "telling",
        "rests",
        "resting",
        "mend",
        "mended",
        "mends",
        "glance",
        "jot",
        "tightening",
        "scrub",
        "lenient",
        "patience",
        "dialect",
        "arrival",
        "arriving",
        "shrinking",
        "settle",
        "settles",
        "settling",
        "offering",
        "undone",
        "workshop",
        "foretell",
    ]
)
"""Parts of identifiers and of file names."""

IDENTIFIERS = frozenset(
    [
        "broken_off",
        "at_rest",
        "goes_on",
        "going_on",
        "go_on",
        "wants_answer",
        "run_token",
        "told_shells",
        "args_digests",
        "rest_status",
        "wind_up",
        "let_be",
        "held_back",
        "taken_back",
        "left_behind",
        "summed_up",
        "going_back",
        "taken_up",
    ]
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

LEFT = 420
"""How many places still use one. May only get smaller, and ends at 0."""


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
            if part in WORDS:
                yield f"{module.path}: {part} in the file name"
        for line, name in identifiers(module):
            if name.lower() in IDENTIFIERS or parts(name) & WORDS:
                yield f"{module.path}:{line} {name}"


def retired_phrases(files: Iterable[tuple[str, str]]) -> Iterator[str]:
    for path, text in files:
        for number, line in enumerate(text.splitlines(), 1):
            if found := PHRASES.search(line):
                yield f"{path}:{number} {found[0]!r}"


def prose() -> Iterator[tuple[str, str]]:
    """The product's sources and everything written for readers."""
    for path, text in text_files():
        if path.startswith(("graph_agent/", "tools/", "policy/", "docs/")) or path.endswith(".md"):
            yield path, text


def test_retired_words_become_fewer() -> None:
    found = [
        *retired_identifiers([*code_modules(), *modules_under("docs/_generate")]),
        *retired_phrases(prose()),
    ]

    if len(found) > LEFT:
        expect_none(found)


def test_retired_words_are_noticed_in_names_strings_and_phrases() -> None:
    module = Module("tools/told.py", "def tell_user(lives: int) -> str:\n    return 'broken_off'\n\nuntold = 1\n")

    assert sorted(retired_identifiers([module])) == [
        "tools/told.py: told in the file name",
        "tools/told.py:1 lives",
        "tools/told.py:1 tell_user",
        "tools/told.py:2 broken_off",
    ]
    assert list(retired_phrases([("a.md", "fine\nIt was broken off.\n")])) == ["a.md:2 'broken off'"]
