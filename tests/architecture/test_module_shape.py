import ast
import re

from tests.architecture.checkout import CODE, Module, Source, code_modules, expect_none, modules_under

VAGUE_NAME = re.compile(r"(Manager|Helper|Util|Utils|Handler|Data)$", re.IGNORECASE)
BANNER = re.compile(r"#\s*[-=*#~_]{3,}")


def shapeless(module: Module) -> list[str]:
    missing = []
    if ast.get_docstring(module.tree) is None:
        missing.append(f"{module.path}: no docstring")
    if "__all__" not in _assigned(module.tree) and len(module.tree.body) > 1:
        missing.append(f"{module.path}: no __all__")
    return missing


def _assigned(tree: ast.Module) -> set[str]:
    targets: list[ast.expr] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign):
            targets.append(node.target)
    return {target.id for target in targets if isinstance(target, ast.Name)}


def unlisted(module: Module) -> list[str]:
    """What has a public name and is not offered; commands are found by their names on the command line."""
    defined = [
        node.name
        for node in module.tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not any(
            "command(" in ast.unparse(one) or "callback(" in ast.unparse(one) for one in node.decorator_list
        )
    ]
    return [f"{module.path}: {name} is not in __all__" for name in defined if name not in _offered(module.tree)]


def _offered(tree: ast.Module) -> list[str]:
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return [name for available in lists for name in ast.literal_eval(available)]


def vague_names(module: Module) -> list[str]:
    classes = [node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    names = [module.name.rpartition(".")[2], *classes]
    return [f"{module.path}: {name}" for name in names if VAGUE_NAME.search(name)]


def banners(source: Source) -> list[str]:
    return [f"{source.path}:{comment.line}" for comment in source.comments if BANNER.match(comment.text)]


def explained_tests(module: Module) -> list[str]:
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and ast.get_docstring(node) is not None
    ]


def test_every_module_has_a_docstring_and_all() -> None:
    modules = [*code_modules(), *modules_under("docs/_generate")]

    expect_none(line for module in modules for line in (*shapeless(module), *unlisted(module)))


def test_no_name_is_vague() -> None:
    expect_none(line for module in code_modules() for line in vague_names(module))


def test_no_comment_is_a_banner() -> None:
    modules = [*code_modules(), *modules_under("tests"), *modules_under("docs/_generate")]

    expect_none(line for module in modules for line in banners(module))


def test_tests_are_explained_by_their_names_alone() -> None:
    expect_none(line for module in modules_under("tests") for line in explained_tests(module))


def test_a_module_without_docstring_or_all_is_noticed() -> None:
    bare = Module("tools/bare.py", "import os\n\nx = os.sep\n")
    listed = Module("tools/listed.py", '"""Why."""\n\n__all__ = ["x"]\nx = 1\n')
    package = Module("tools/__init__.py", '"""Only a package."""\n')
    hidden = Module(
        "tools/hidden.py", '"""Why."""\n\n__all__ = ["x"]\n\ndef x(): ...\ndef y(): ...\ndef _z(): ...\n'
    )

    assert [shapeless(module) for module in (bare, listed, package)] == [
        ["tools/bare.py: no docstring", "tools/bare.py: no __all__"],
        [],
        [],
    ]
    assert unlisted(hidden) == ["tools/hidden.py: y is not in __all__"]


def test_vague_names_are_noticed_in_classes_and_files() -> None:
    module = Module("tools/path_utils.py", "class CallManager: ...\n\nclass Managers: ...\n")

    assert vague_names(module) == ["tools/path_utils.py: path_utils", "tools/path_utils.py: CallManager"]


def test_banners_are_noticed() -> None:
    assert banners(Source("a.py", "# ---- parts ----\nx = 1  # why\n# ======\n")) == ["a.py:1", "a.py:3"]


def test_a_docstring_on_a_test_is_noticed() -> None:
    module = Module(
        "tests/test_a.py", 'def test_x() -> None:\n    """Told."""\n\n\ndef other() -> None:\n    """Free."""\n'
    )

    assert explained_tests(module) == ["tests/test_a.py:1 test_x"]


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


def layer_of(source: Source) -> str:
    parts = source.path.removesuffix(".py").split("/")
    return "/".join(parts[:2]) if parts[0] == CODE[0] else parts[0]


def crowded_boundaries(sources: list[Source]) -> list[str]:
    boundaries: dict[str, set[str]] = {}
    for source in sources:
        if broad_catches(source):
            boundaries.setdefault(layer_of(source), set()).add(source.path)
    return [f"{layer}: {', '.join(sorted(paths))}" for layer, paths in boundaries.items() if len(paths) > 1]


def test_every_suppression_names_its_code_and_its_reason() -> None:
    everything = [*code_modules(), *modules_under("tests"), *modules_under("docs")]

    expect_none(line for module in everything for line in unexplained_suppressions(module))


def test_every_broad_except_says_which_boundary_it_is() -> None:
    expect_none(line for module in code_modules() for line in unexplained_catches(module))


def test_each_layer_catches_everything_in_one_module_at_most() -> None:
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


def test_a_second_boundary_in_one_layer_is_noticed() -> None:
    broad = "try:\n    f()\nexcept Exception:  # noqa: BLE001 - the boundary\n    g()\n"
    paths = ["graph_agent/cli/a.py", "graph_agent/cli/b/c.py", "graph_agent/store/d.py", "tools/e.py"]

    assert crowded_boundaries([Source(path, broad) for path in paths]) == [
        "graph_agent/cli: graph_agent/cli/a.py, graph_agent/cli/b/c.py"
    ]
