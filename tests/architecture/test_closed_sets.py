"""A `match` over the statuses of a call handles all of them: mypy then names each place that a new one concerns."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.calls import STATUSES

_PRODUCT = Path(__file__).parents[2] / "graph_agent"


def _matches(tree: ast.AST) -> Iterator[set[str]]:
    """The statuses that each `match` over a status names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Match) and "status" in ast.unparse(node.subject):
            patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
            constants = [part.value for part in patterns if isinstance(part, ast.MatchValue)]
            values = {str(constant.value) for constant in constants if isinstance(constant, ast.Constant)}
            if len(values) > 1 and values <= set(STATUSES):
                yield values


@pytest.mark.parametrize("package", ["calls", "graph"])
def test_a_match_over_statuses_handles_each_of_them(package: str) -> None:
    files = sorted((_PRODUCT / package).rglob("*.py"))
    found = [named for path in files for named in _matches(ast.parse(path.read_text(encoding="utf-8")))]

    assert found, "nothing matches over the statuses any more"
    assert [named for named in found if named != set(STATUSES)] == []
