import ast
import re

from tests.architecture.checkout import Module, Source, code_modules, expect_none, modules_under

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
    return [name for offered in lists for name in ast.literal_eval(offered)]


def vague_names(module: Module) -> list[str]:
    classes = [node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    names = [module.name.rpartition(".")[2], *classes]
    return [f"{module.path}: {name}" for name in names if VAGUE_NAME.search(name)]


def banners(source: Source) -> list[str]:
    return [f"{source.path}:{comment.line}" for comment in source.comments if BANNER.match(comment.text)]


def told_tests(module: Module) -> list[str]:
    return [
        f"{module.path}:{node.lineno} {node.name}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and ast.get_docstring(node) is not None
    ]


def test_every_module_says_what_it_is_for_and_what_it_offers() -> None:
    modules = [*code_modules(), *modules_under("docs/_generate")]

    expect_none(line for module in modules for line in (*shapeless(module), *unlisted(module)))


def test_no_name_hides_what_the_thing_does() -> None:
    expect_none(line for module in code_modules() for line in vague_names(module))


def test_no_comment_is_a_banner() -> None:
    modules = [*code_modules(), *modules_under("tests"), *modules_under("docs/_generate")]

    expect_none(line for module in modules for line in banners(module))


def test_the_name_of_a_test_carries_it_without_a_docstring() -> None:
    expect_none(line for module in modules_under("tests") for line in told_tests(module))


def test_a_module_without_docstring_or_offer_is_noticed() -> None:
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

    assert told_tests(module) == ["tests/test_a.py:1 test_x"]
