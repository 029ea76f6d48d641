import ast

from tests.architecture.checkout import CODE, Module, code_modules, expect_none, modules_under

EDGES = "tests/scenarios/test_edges.py"
TURNS = "tests/scenarios/test_turns.py"
KILLS = "tests/crash/test_kill_sweep.py"
COMMANDS = "tests/scenarios/test_killed_commands.py"

WEB = "tests/tools/web_ops/test_web_fetch.py"
TESTED_THROUGH = {
    "graph_agent/app/delegating.py": "tests/graph_agent/session/test_subagents.py",
    "graph_agent/app/opening.py": COMMANDS,
    "graph_agent/app/servers.py": "tests/cases/test_mcp.py",
    "graph_agent/app/tooling.py": COMMANDS,
    "graph_agent/app/wiring.py": COMMANDS,
    "graph_agent/graph/approval.py": TURNS,
    "graph_agent/graph/build.py": EDGES,
    "graph_agent/graph/changes.py": EDGES,
    "graph_agent/graph/execution.py": KILLS,
    "graph_agent/graph/life.py": KILLS,
    "graph_agent/graph/observation.py": EDGES,
    "graph_agent/graph/reasoning.py": TURNS,
    "graph_agent/graph/routing.py": TURNS,
    "graph_agent/session/answering.py": TURNS,
    "graph_agent/session/drive.py": TURNS,
    "graph_agent/session/evidence.py": COMMANDS,
    "graph_agent/session/run.py": TURNS,
    "graph_agent/session/session.py": TURNS,
    "graph_agent/session/turns.py": TURNS,
    "tools/file_ops/grep_report.py": "tests/tools/file_ops/test_grep.py",
    "tools/walking.py": "tests/tools/file_ops/test_glob.py",
    "tools/web_ops/connecting.py": WEB,
    "tools/web_ops/fetching.py": WEB,
    "tools/web_ops/reading.py": WEB,
}
"""Modules without a test file of their own, and the test file that exercises them. May only get shorter."""


def has_behaviour(module: Module) -> bool:
    """Whether there is anything to test: a function with a body; protocols and plain values have none."""
    return not module.is_package and any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_empty(node)
        for node in ast.walk(module.tree)
    )


def _is_empty(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return all(isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant) for step in node.body)


def module_behind(test_path: str, modules: set[str]) -> str | None:
    """The module a test file is about: `test_saver_crash.py` is about `saver.py`; the longest name wins."""
    folder, _, name = test_path.removeprefix("tests/").rpartition("/")
    words = name.removeprefix("test_").removesuffix(".py").split("_")
    for end in range(len(words), 0, -1):
        stem = "_".join(words[:end])
        for candidate in (f"{folder}/{stem}.py", f"{folder}/__{stem}__.py", f"{folder}/{stem}/__init__.py"):
            if candidate in modules:
                return candidate
    return None


def mirrored_tests() -> list[str]:
    return [
        module.path
        for folder in CODE
        for module in modules_under(f"tests/{folder}")
        if module.path.rpartition("/")[2].startswith("test_")
    ]


def test_every_test_file_is_named_after_what_it_tests() -> None:
    paths = {module.path for module in code_modules()}

    expect_none(test for test in mirrored_tests() if module_behind(test, paths) is None)


def test_every_module_with_behaviour_has_its_tests() -> None:
    paths = {module.path for module in code_modules()}
    tested = {module_behind(test, paths) for test in mirrored_tests()}

    untested = {module.path for module in code_modules() if has_behaviour(module)} - tested

    assert untested == TESTED_THROUGH.keys()


def test_what_is_tested_through_others_names_files_that_exist() -> None:
    tests = {module.path for module in modules_under("tests")}

    assert set(TESTED_THROUGH.values()) - tests == set()


def test_a_test_file_belongs_to_the_module_with_the_longest_fitting_name() -> None:
    modules = {"tools/read.py", "tools/read_file.py", "tools/ops/__init__.py", "tools/__main__.py"}
    names = ["read_file_limits", "ops", "main", "reading"]

    assert [module_behind(f"tests/tools/test_{name}.py", modules) for name in names] == [
        "tools/read_file.py",
        "tools/ops/__init__.py",
        "tools/__main__.py",
        None,
    ]


def test_protocols_and_values_need_no_tests_of_their_own() -> None:
    protocol = Module("graph_agent/p.py", 'class P:\n    def f(self) -> int:\n        """Why."""\n        ...\n')
    function = Module("graph_agent/f.py", "def f() -> int:\n    return 1\n")

    assert [has_behaviour(module) for module in (protocol, function)] == [False, True]
