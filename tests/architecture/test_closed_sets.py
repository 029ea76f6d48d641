"""A `match` over a closed set of words handles each of them: mypy then names each place that a new one concerns."""

import ast
from pathlib import Path

import pytest

_PRODUCT = Path(__file__).parents[2] / "graph_agent"
_OPEN = {'call.get("decision")'}
"""Subjects of which only some values are told apart on purpose."""


def _open_matches(code: str) -> list[str]:
    """The subjects of each `match` over two words or more that does not end with `assert_never`."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Match):
            patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
            values = [part.value for part in patterns if isinstance(part, ast.MatchValue)]
            words = [value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]
            if len(words) > 1 and "assert_never" not in ast.unparse(node.cases[-1]):
                found.append(ast.unparse(node.subject).replace("'", '"'))
    return found


@pytest.mark.parametrize("place", ["calls.py", "events.py", "graph", "ports"])
def test_a_match_over_words_handles_each_of_its_set(place: str) -> None:
    path = _PRODUCT / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))

    assert [
        found for file in files for found in _open_matches(file.read_text(encoding="utf-8")) if found not in _OPEN
    ] == []


def test_a_match_that_passes_over_a_new_word_is_found() -> None:
    code = "match status:\n    case 'success':\n        pass\n    case 'error':\n        pass\n"

    assert _open_matches(code) == ["status"]
    assert _open_matches(f"{code}    case _ as never:\n        assert_never(never)\n") == []
