"""Every program that the agent starts is named in full, or was looked up by the one function that does."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.checkout import CODE, Module, code_modules, expect_none

_LOOKUP = "tools/programs.py"
_STARTERS = frozenset(
    (
        "subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call", "subprocess.check_output",
        "asyncio.create_subprocess_exec", "os.execv", "os.execve", "os.posix_spawn", "os.spawnv", "os.spawnve",
    )
)  # fmt: skip
_SEARCHING = frozenset(
    (
        "shutil.which", "os.system", "os.popen", "os.execvp", "os.execvpe", "os.execlp", "os.execlpe",
        "os.posix_spawnp", "os.spawnvp", "os.spawnvpe", "os.spawnlp", "os.get_exec_path", "pty.spawn",
        "subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell",
        "webbrowser.open",
    )
)  # fmt: skip
"""They look on PATH themselves, or let a shell do it."""
_LOOKED_UP = {
    ("graph_agent/app/chat_input.py", "program_words(command)"): "looked up by `program_words`",
    ("graph_agent/cli/prompts/terminal_output.py", "command"): "from `find_program`",
    ("graph_agent/app/notifications.py", "words"): "a list that begins with the result of `find_program`",
    ("graph_agent/app/doctor.py", "program"): "from `find_program`, `find_ripgrep` or `find_shfmt`",
    ("graph_agent/cli/chat/shell_escape.py", "shell"): "$SHELL if that is a full path",
    ("graph_agent/cli/demo/workspace.py", "self._program"): "this interpreter",
    ("graph_agent/cli/demo/workspace.py", "command"): "this interpreter, or a full path",
    ("graph_agent/cli/prompts/editor.py", "editor_words(command)"): "looked up by `program_words`",
    ("graph_agent/cli/views/memory.py", "editor_words(command)"): "looked up by `program_words`",
    ("graph_agent/worker/worktrees.py", "words"): "a list that begins with the result of `find_program`",
    ("graph_agent/mcp/transport.py", "launch.words"): "from `find_program`, or the sandbox",
    ("graph_agent/ports/background.py", "command"): "full paths",
    ("tools/shell_ops/bash_parser.py", "program"): "from `find_shfmt`",
    ("tools/file_ops/grep_engine.py", "command"): "from `find_ripgrep`",
    ("tools/sandbox/landlock.py", "program[0]"): "what the sandbox was asked to start",
    ("tools/sandbox/sandbox.py", "program"): "from `find_program`",
    ("tools/shell_ops/changed_files.py", "git"): "from `find_program`",
    ("tools/shell_ops/process.py", "_PS"): "a full path",
    ("tools/shell_ops/process.py", "asked"): "a list that begins with `_PS`",
    ("tools/shell_ops/process.py", "namespace"): "from `find_program`, and a full path after it",
}
"""First words that are no literal, with the reason why they are a path."""


def _calls(module: Module) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def _first_word(call: ast.Call) -> str:
    """The program of a call, as it is written; a constant without quotes."""
    first: ast.expr = call.args[0]
    while isinstance(first, ast.List | ast.Tuple | ast.Starred):
        first = first.value if isinstance(first, ast.Starred) else first.elts[0]
    if isinstance(first, ast.Constant):
        return str(first.value)
    return ast.unparse(first)


def _started(module: Module) -> list[str]:
    """The first words that are no full path."""
    words = [_first_word(call) for name, call in _calls(module) if name in _STARTERS]
    return [word for word in words if not word.startswith("/")]


def searching(module: Module) -> list[str]:
    """Calls that find programs on their own."""
    found = [f"{name}, line {call.lineno}" for name, call in _calls(module) if name in _SEARCHING]
    for name, call in _calls(module):
        if name in _STARTERS and any(keyword.arg in ("shell", "executable") for keyword in call.keywords):
            found.append(f"{name} by a shell, line {call.lineno}")
    for node in ast.walk(module.tree):
        names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
        if isinstance(node, ast.ImportFrom) and any(
            f"{node.module}.{name}" in _SEARCHING | _STARTERS for name in names
        ):
            found.append(f"from {node.module} import, line {node.lineno}: write the module before the name")
    return found


def test_no_module_searches_for_programs_but_one() -> None:
    expect_none(f"{module.path}: {found}" for module in code_modules() for found in searching(module))


def test_each_program_is_a_full_path_or_was_looked_up() -> None:
    found = {(module.path, word) for module in code_modules() for word in _started(module)}

    assert found == set(_LOOKED_UP)


def test_path_is_read_where_programs_are_looked_up_and_for_what_commands_see() -> None:
    readers = {module.path for module in code_modules() if 'environ.get("PATH"' in module.text}

    assert readers == {_LOOKUP, "graph_agent/app/toolset.py", "tools/sandbox/sandbox.py"}


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ('subprocess.run(["git", "status"])', ["git"]),
        ('subprocess.Popen([*words, "x"])', ["words"]),
        ('await asyncio.create_subprocess_exec("/bin/ls")', []),
        ("os.execv(program, [program])", ["program"]),
    ],
)
def test_a_program_that_is_not_named_in_full_is_found(text: str, findings: list[str]) -> None:
    assert _started(Module(f"{CODE[0]}/x.py", f"async def f():\n    {text}\n")) == findings


@pytest.mark.parametrize(
    "text",
    [
        'shutil.which("git")', 'os.system("git")', 'subprocess.run("git status", shell=True)',
        'subprocess.run(["/x"], executable="git")', "from shutil import which", "from subprocess import run",
    ],
)  # fmt: skip
def test_a_search_of_its_own_is_found(text: str) -> None:
    assert len(searching(Module(f"{CODE[0]}/x.py", f"{text}\n"))) == 1
