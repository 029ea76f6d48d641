"""The section "Add a tool" of CONTRIBUTING.md, followed step by step in a copy of the tree."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_TREE = Path(__file__).parents[2]
_COPIED = ("tools", "tests")
_LINKED = ("graph_agent", "policy", "pyproject.toml")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tree that contains the tool of the section, in three files."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in _COPIED:
        shutil.copytree(_TREE / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _LINKED:
        (tree / name).symlink_to(_TREE / name)
    section = (_TREE / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add a tool")[1].split("\n## ")[0]
    section = re.sub(r"(?m)^ {3}", "", section)
    tool, test = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (tree / "tools/file_ops/count_lines.py").write_text(tool)
    (tree / "tests/tools/file_ops/test_count_lines.py").write_text(test)
    registration = tree / "tools/built_in.py"
    text = registration.read_text(encoding="utf-8")
    for diff in re.findall(r"```diff\n(.*?)```", section, re.DOTALL):
        before = "".join(line[1:] for line in diff.splitlines(keepends=True) if line.startswith(" "))
        after = "".join(line[1:] for line in diff.splitlines(keepends=True))
        assert text.count(before) == 1
        text = text.replace(before, after)
    registration.write_text(text, encoding="utf-8")
    return tree


def _run(tree: Path, folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_three_files_are_all_a_new_tool_takes(tree: Path, tmp_path: Path) -> None:
    tests = ("tests/contracts/test_tools.py", "tests/tools/file_ops/test_count_lines.py")

    selected = "count_lines or changes_only"
    report = _run(tree, tree, "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", selected, *tests)
    tool = json.loads(_run(tree, tmp_path, "graph_agent", "tools", "show", "count_lines", "--json"))

    assert re.search(r"1[2-9] passed", report)
    expected = {"name": "count_lines", "risk": "low", "kind": "readonly", "in_plan_mode": True, "offered": True}
    assert {key: tool[key] for key in expected} == expected
    assert list(tool["parameters"]["properties"]) == ["file_path", "only_filled"]
