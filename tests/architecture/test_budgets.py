import ast
from statistics import median

from tests.architecture.checkout import Module, Source, code_modules, expect_none, modules_under

MODULE_LINES = 300
MEDIAN_LINES = 120
FUNCTION_LINES = 40


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


def test_no_module_is_longer_than_the_budget() -> None:
    expect_none(long_modules([*code_modules(), *modules_under("docs/_generate")]))


def test_half_of_the_modules_stay_short() -> None:
    with_content = [module.lines for module in code_modules() if len(module.tree.body) > 1]

    assert median(with_content) <= MEDIAN_LINES


def test_no_function_is_longer_than_the_budget() -> None:
    expect_none(line for module in code_modules() for line in long_functions(module))


def test_a_module_one_line_too_long_is_noticed() -> None:
    modules = [Module("a.py", "x = 1\n" * MODULE_LINES), Module("b.py", "x = 1\n" * (MODULE_LINES + 1))]

    assert long_modules(modules) == ["b.py: 301 lines"]


def test_a_function_one_line_too_long_is_noticed_wherever_it_stands() -> None:
    body = "        x = 1\n" * (FUNCTION_LINES - 1)
    source = Source(
        "a.py", f"class A:\n    def fits(self):\n{body}\n    async def grew(self):\n{body}        x = 2\n"
    )

    assert long_functions(source) == ["a.py:43 grew: 41 lines"]
