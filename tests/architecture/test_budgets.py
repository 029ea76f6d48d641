"""The size and shape of the product: number and length of modules, length of functions, and imports."""

import ast
from collections.abc import Iterable, Mapping
from statistics import median

from tests.architecture.checkout import Module, Source, code_modules, expect_none, modules_under

MODULES = 300
ADD_ONS = (
    "graph_agent/durable/",
    "graph_agent/acp/",
    "graph_agent/web/",
    "graph_agent/storage/postgres/",
    "graph_agent/worker/",
)
"""Packages that nothing else imports; a reader of the agent can leave them out."""
ADD_ON_MODULES = 12
MODULE_LINES = 600
MEDIAN_LINES = 150
FUNCTION_LINES = 50
GRAPH_FRAMEWORK_FILES = 5


def long_modules(modules: list[Module]) -> list[str]:
    return [f"{module.path}: {module.lines} lines" for module in modules if module.lines > MODULE_LINES]


def long_functions(source: Source) -> list[str]:
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                found.append(f"{source.path}:{node.lineno} {node.name}: {length} lines")
    return found


def import_graph(modules: Iterable[Module]) -> dict[str, set[str]]:
    """For each module the modules it imports, also those imported inside functions."""
    by_name = {module.name: module for module in modules}
    graph: dict[str, set[str]] = {}
    for name, module in by_name.items():
        targets = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets |= {
                    full if (full := f"{node.module}.{alias.name}") in by_name else node.module
                    for alias in node.names
                }
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
        graph[name] = {target for target in targets if target in by_name and target != name}
    return graph


def import_cycles(graph: Mapping[str, set[str]]) -> list[str]:
    """What is left after modules that import nothing of the rest are taken away, again and again."""
    left = {name: set(targets) for name, targets in graph.items()}
    while leaves := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in leaves:
            del left[name]
    return sorted(left)


def framework_files(modules: Iterable[Module]) -> list[str]:
    """The modules that import LangGraph, wherever in the file."""
    found = []
    for module in modules:
        imports = [node for node in ast.walk(module.tree) if isinstance(node, ast.Import)]
        names = [alias.name for node in imports for alias in node.names]
        names += [node.module or "" for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)]
        if any(name.partition(".")[0] == "langgraph" for name in names):
            found.append(module.path)
    return found


def product_modules() -> list[Module]:
    """Without migrations, of which there is one small file for each."""
    return [module for module in code_modules() if not module.is_package and "/migrations/" not in module.path]


def test_the_product_has_no_more_modules_than_planned() -> None:
    core = [module for module in product_modules() if not module.path.startswith(ADD_ONS)]
    add_ons = [sum(module.path.startswith(folder) for module in product_modules()) for folder in ADD_ONS]

    assert len(core) <= MODULES
    assert max(add_ons) <= ADD_ON_MODULES, dict(zip(ADD_ONS, add_ons, strict=True))


def test_no_module_is_longer_than_the_budget() -> None:
    expect_none(long_modules([*code_modules(), *modules_under("docs/_generate")]))


def test_modules_hold_whole_concepts() -> None:
    assert median(module.lines for module in product_modules()) >= MEDIAN_LINES


def test_no_function_is_longer_than_a_screen() -> None:
    expect_none(line for module in code_modules() for line in long_functions(module))


def test_modules_import_each_other_in_one_direction_only() -> None:
    expect_none(import_cycles(import_graph(product_modules())))


def test_only_a_few_files_import_the_graph_framework() -> None:
    files = framework_files(module for module in code_modules() if not module.path.startswith(ADD_ONS))

    assert len(files) <= GRAPH_FRAMEWORK_FILES, files


def test_a_module_one_line_too_long_is_noticed() -> None:
    modules = [Module("a.py", "x = 1\n" * MODULE_LINES), Module("b.py", "x = 1\n" * (MODULE_LINES + 1))]

    assert long_modules(modules) == ["b.py: 601 lines"]


def test_a_function_one_line_too_long_is_noticed_wherever_it_is() -> None:
    body = "        x = 1\n" * (FUNCTION_LINES - 1)
    source = Source(
        "a.py", f"class A:\n    def fits(self):\n{body}\n    async def grew(self):\n{body}        x = 2\n"
    )

    assert long_functions(source) == ["a.py:53 grew: 51 lines"]


def test_an_import_cycle_is_noticed_also_inside_functions_and_type_checking() -> None:
    modules = [
        Module("tools/a.py", "from tools.b import x\n"),
        Module("tools/b.py", "def f():\n    from tools import c\n"),
        Module("tools/c.py", "if TYPE_CHECKING:\n    import tools.a\n"),
    ]

    assert import_cycles(import_graph(modules)) == ["tools.a", "tools.b", "tools.c"]
    assert import_cycles(import_graph(modules[:2])) == []


def test_every_way_to_import_the_graph_framework_is_noticed() -> None:
    modules = [
        Module("a.py", "import langgraph.types\n"),
        Module("b.py", "def f():\n    from langgraph.graph import StateGraph\n"),
        Module("c.py", "import langgraph_sdk\n"),
    ]

    assert framework_files(modules) == ["a.py", "b.py"]
