import ast
import re

from tests.architecture.checkout import CODE, Source, code_modules, expect_none, modules_under

EXPLAINED_IGNORE = re.compile(r"# type: ignore\[[\w-]+(, ?[\w-]+)*\]\s+#\s*\w.*")
EXPLAINED_NOQA = re.compile(r"# noqa: [A-Z]+\d+(, ?[A-Z]+\d+)* -{1,2} \w.*")
SUPPRESSION = re.compile(r"#\s*(type:\s*ignore|noqa|pragma|pyright|mypy|ruff)\b", re.IGNORECASE)


def unexplained_suppressions(source: Source) -> list[str]:
    return [
        f"{source.path}:{comment.line} {comment.text}"
        for comment in source.comments
        if SUPPRESSION.search(comment.text)
        and not EXPLAINED_IGNORE.search(comment.text)
        and not EXPLAINED_NOQA.search(comment.text)
    ]


def broad_catches(source: Source) -> list[int]:
    """Lines of handlers that take any exception and keep it; those that end by raising it again do not count."""
    return [
        node.lineno
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and not _raises_again(node)
    ]


def _is_broad(kind: ast.expr | None) -> bool:
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(
        name is None or (isinstance(name, ast.Name) and name.id in ("Exception", "BaseException")) for name in names
    )


def _raises_again(node: ast.ExceptHandler) -> bool:
    last = node.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def unexplained_catches(source: Source) -> list[str]:
    explained = {comment.line for comment in source.comments if EXPLAINED_NOQA.search(comment.text)}
    return [f"{source.path}:{line}" for line in broad_catches(source) if line not in explained]


def floor_of(source: Source) -> str:
    parts = source.path.removesuffix(".py").split("/")
    return "/".join(parts[:2]) if parts[0] == CODE[0] else parts[0]


def crowded_boundaries(sources: list[Source]) -> list[str]:
    boundaries: dict[str, set[str]] = {}
    for source in sources:
        if broad_catches(source):
            boundaries.setdefault(floor_of(source), set()).add(source.path)
    return [f"{floor}: {', '.join(sorted(paths))}" for floor, paths in boundaries.items() if len(paths) > 1]


def test_every_suppression_names_its_code_and_its_reason() -> None:
    everything = [*code_modules(), *modules_under("tests"), *modules_under("docs")]

    expect_none(line for module in everything for line in unexplained_suppressions(module))


def test_every_broad_except_says_which_boundary_it_is() -> None:
    expect_none(line for module in code_modules() for line in unexplained_catches(module))


def test_each_floor_catches_everything_in_one_module_at_most() -> None:
    expect_none(crowded_boundaries(list(code_modules())))


def test_suppressions_without_code_or_reason_are_noticed() -> None:
    text = """
a = 1  # type: ignore
b = 1  # type: ignore[arg-type]
c = 1  # noqa
d = 1  # noqa: S101
e = 1  # type: ignore[arg-type, misc]  # the library's stub is wrong
f = 1  # noqa: S101, S102 - reads better so
g = "# noqa"
"""

    assert unexplained_suppressions(Source("a.py", text)) == [
        "a.py:2 # type: ignore",
        "a.py:3 # type: ignore[arg-type]",
        "a.py:4 # noqa",
        "a.py:5 # noqa: S101",
    ]


def test_broad_catches_are_noticed_in_every_spelling() -> None:
    clauses = ["except:", "except Exception:", "except (ValueError, BaseException) as e:", "except ValueError:"]
    text = "".join(f"try:\n    f()\n{clause}\n    g()\n" for clause in clauses)
    undone = "try:\n    f()\nexcept BaseException:\n    undo()\n    raise\n"

    assert unexplained_catches(Source("a.py", text + undone)) == ["a.py:3", "a.py:7", "a.py:11"]


def test_a_second_boundary_on_one_floor_is_noticed() -> None:
    broad = "try:\n    f()\nexcept Exception:  # noqa: BLE001 - the boundary\n    g()\n"
    paths = ["graph_agent/cli/a.py", "graph_agent/cli/b/c.py", "graph_agent/store/d.py", "tools/e.py"]

    assert crowded_boundaries([Source(path, broad) for path in paths]) == [
        "graph_agent/cli: graph_agent/cli/a.py, graph_agent/cli/b/c.py"
    ]
