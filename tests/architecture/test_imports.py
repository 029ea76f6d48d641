import ast
from graphlib import CycleError, TopologicalSorter

from tests.architecture.checkout import Module, code_modules, expect_none

GRAPH_FRAMEWORK_FILES = 5
IMPORTS_LATE = frozenset(("graph_agent",))
"""`graph_agent` offers `open_session` through a late import of the floor that wires it."""


def imported_names(module: Module) -> set[str]:
    """Every dotted name that an import statement anywhere in the module may load."""
    names: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def import_cycle(modules: list[Module]) -> list[str]:
    """Names of modules that import each other in a ring, or nothing."""
    known = {module.name for module in modules}
    graph = {
        module.name: _targets(module, known) - {module.name}
        for module in modules
        if module.name not in IMPORTS_LATE
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _targets(module: Module, known: set[str]) -> set[str]:
    """Modules the statements name; a package is meant only where none of its modules is."""
    targets: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                targets.add(inner if inner in known else node.module)
    return targets & known


def framework_files(modules: list[Module]) -> list[str]:
    return [
        module.path
        for module in modules
        if any(name.partition(".")[0] == "langgraph" for name in imported_names(module))
    ]


def test_no_two_modules_import_each_other() -> None:
    expect_none(import_cycle(code_modules()))


def test_only_a_few_files_know_the_graph_framework() -> None:
    files = framework_files(code_modules())

    assert len(files) <= GRAPH_FRAMEWORK_FILES, files


def test_a_ring_of_imports_is_noticed_also_inside_functions_and_type_checking() -> None:
    modules = [
        Module("a/__init__.py", ""),
        Module("a/one.py", "from a import two\n"),
        Module("a/two.py", "if TYPE_CHECKING:\n    from a.three import x\n"),
        Module("a/three.py", "def f():\n    import a.one\n"),
    ]

    assert set(import_cycle(modules)) == {"a.one", "a.two", "a.three"}
    assert import_cycle(modules[:3]) == []


def test_every_way_to_import_the_graph_framework_is_counted() -> None:
    modules = [
        Module("a.py", "import langgraph.types\n"),
        Module("b.py", "def f():\n    from langgraph.graph import StateGraph\n"),
        Module("c.py", "import langgraph_sdk\n"),
    ]

    assert framework_files(modules) == ["a.py", "b.py"]
