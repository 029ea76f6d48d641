"""What every module has, and what none may have. Each check returns its findings in one module."""

import ast
import re
from collections.abc import Callable

import pytest

from tests.architecture.checkout import CODE, Module, code_modules, expect_none, modules_under

VAGUE_NAME = re.compile(r"(Manager|Helper|Util|Utils|Handler|Data)$", re.IGNORECASE)
BANNER = re.compile(r"#\s*[-=*#~_]{3,}")
EXPLAINED_IGNORE = re.compile(r"# type: ignore\[[\w-]+(, ?[\w-]+)*\]\s+#\s*\w.*")
EXPLAINED_NOQA = re.compile(r"# noqa: [A-Z]+\d+(, ?[A-Z]+\d+)* -{1,2} \w.*")
SUPPRESSION = re.compile(r"#\s*(type:\s*ignore|noqa|pragma|pyright|mypy|ruff)\b", re.IGNORECASE)


def shapeless(module: Module) -> list[str]:
    """Neither a docstring nor `__all__`, or a public name that is not in it; Typer finds commands by decorator."""
    findings = [] if ast.get_docstring(module.tree) else ["no docstring"]
    assigned = [node for node in module.tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    offers = [node.value for node in assigned if ast.unparse(node).startswith("__all__")]
    if not offers and len(module.tree.body) > 1:
        findings.append("no __all__")
    listed = [name for offer in offers if offer for name in ast.literal_eval(offer)]
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            is_public = not node.name.startswith("_") and "command(" not in decorators
            if is_public and "callback(" not in decorators and node.name not in listed:
                findings.append(f"{node.name} is not in __all__")
    return findings


def vague_names(module: Module) -> list[str]:
    classes = [node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    return [name for name in (module.name.rpartition(".")[2], *classes) if VAGUE_NAME.search(name)]


def banners(module: Module) -> list[str]:
    return [f"line {comment.line}" for comment in module.comments if BANNER.match(comment.text)]


def explained_tests(module: Module) -> list[str]:
    """Tests with a docstring: their names say it."""
    functions = [node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in functions if node.name.startswith("test_") and ast.get_docstring(node)]


def unexplained_suppressions(module: Module) -> list[str]:
    return [
        f"line {comment.line}: {comment.text}"
        for comment in module.comments
        if SUPPRESSION.search(comment.text)
        and not EXPLAINED_IGNORE.search(comment.text)
        and not EXPLAINED_NOQA.search(comment.text)
    ]


def broad_catches(module: Module) -> list[int]:
    """Lines of handlers that take any exception and keep it; those that end by raising one do not count."""
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {ast.unparse(kind) if kind else "Exception" for kind in kinds}
            if names & {"Exception", "BaseException"} and not isinstance(node.body[-1], ast.Raise):
                found.append(node.lineno)
    return found


def unexplained_catches(module: Module) -> list[str]:
    """Broad handlers without a comment that says which boundary they are."""
    explained = {comment.line for comment in module.comments if EXPLAINED_NOQA.search(comment.text)}
    return [f"line {line}" for line in broad_catches(module) if line not in explained]


def crowded_boundaries(modules: list[Module]) -> list[str]:
    """Layers that catch everything in more than one module."""
    boundaries: dict[str, set[str]] = {}
    for module in modules:
        if broad_catches(module):
            parts = module.path.removesuffix(".py").split("/")
            layer = "/".join(parts[:2]) if parts[0] == CODE[0] else parts[0]
            boundaries.setdefault(layer, set()).add(module.path)
    return [f"{layer}: {', '.join(sorted(paths))}" for layer, paths in boundaries.items() if len(paths) > 1]


Check = Callable[[Module], list[str]]


@pytest.mark.parametrize(
    ("check", "folders"),
    [
        (shapeless, (*CODE, "docs/_generate")),
        (vague_names, CODE),
        (banners, (*CODE, "tests", "docs/_generate")),
        (explained_tests, ("tests",)),
        (unexplained_suppressions, (*CODE, "tests", "docs")),
        (unexplained_catches, CODE),
    ],
)
def test_no_module_has_a_finding(check: Check, folders: tuple[str, ...]) -> None:
    modules = [module for folder in folders for module in modules_under(folder)]

    expect_none(f"{module.path}: {finding}" for module in modules for finding in check(module))


def test_each_layer_catches_everything_in_one_module_at_most() -> None:
    expect_none(crowded_boundaries(code_modules()))


_SUPPRESSIONS = """
a = 1  # type: ignore
b = 1  # type: ignore[arg-type]
c = 1  # noqa
d = 1  # noqa: S101
e = 1  # type: ignore[arg-type, misc]  # the library's stub is wrong
f = 1  # noqa: S101, S102 - reads better so
g = "# noqa"
"""
_CLAUSES = ("except:", "except Exception:", "except (ValueError, BaseException) as e:", "except ValueError:")
_CATCHES = "".join(f"try:\n    f()\n{clause}\n    g()\n" for clause in _CLAUSES)
_RAISED_AGAIN = "try:\n    f()\nexcept BaseException:\n    undo()\n    raise\n"


@pytest.mark.parametrize(
    ("check", "text", "findings"),
    [
        (shapeless, "import os\n\nx = os.sep\n", ["no docstring", "no __all__"]),
        (shapeless, '"""Why."""\n\n__all__ = ["x"]\nx = 1\n', []),
        (shapeless, '"""Only a package."""\n', []),
        (
            shapeless,
            '"""Why."""\n\n__all__ = ["x"]\ndef x(): ...\ndef y(): ...\ndef _z(): ...\n',
            ["y is not in __all__"],
        ),
        (vague_names, "class CallManager: ...\n\nclass Managers: ...\n", ["path_utils", "CallManager"]),
        (banners, "# ---- parts ----\nx = 1  # why\n# ======\n", ["line 1", "line 3"]),
        (explained_tests, 'def test_x():\n    """Why."""\ndef other():\n    """Why."""\n', ["test_x"]),
        (
            unexplained_suppressions,
            _SUPPRESSIONS,
            [
                "line 2: # type: ignore",
                "line 3: # type: ignore[arg-type]",
                "line 4: # noqa",
                "line 5: # noqa: S101",
            ],
        ),
        (unexplained_catches, _CATCHES + _RAISED_AGAIN, ["line 3", "line 7", "line 11"]),
    ],
)
def test_a_check_finds_what_it_is_for(check: Check, text: str, findings: list[str]) -> None:
    assert check(Module("tools/path_utils.py", text)) == findings


def test_a_second_boundary_in_one_layer_is_noticed() -> None:
    broad = "try:\n    f()\nexcept Exception:  # noqa: BLE001 - the boundary\n    g()\n"
    paths = ["graph_agent/cli/a.py", "graph_agent/cli/b/c.py", "graph_agent/store/d.py", "tools/e.py"]

    assert crowded_boundaries([Module(path, broad) for path in paths]) == [
        "graph_agent/cli: graph_agent/cli/a.py, graph_agent/cli/b/c.py"
    ]
