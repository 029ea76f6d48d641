import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_a_workspace_with_its_own_tools_and_policy_folders_does_not_disturb_the_program(tmp_path: Path) -> None:
    for name in ("tools", "policy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('the wrong package')")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(
        [sys.executable, "-m", "graph_agent", "run", "list files"],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, "policy/" in done.stdout and "tools/" in done.stdout) == (0, True), done.stderr


_INTERRUPTED_WHILE_LOADING = """
import os, signal, sys
from graph_agent.__main__ import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "graph_agent.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["graph-agent", "config", "path"]
sys.exit(main())
"""


def test_ctrl_c_while_the_program_is_loaded_ends_it_with_130_and_without_a_word() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_WHILE_LOADING], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
