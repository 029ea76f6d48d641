import os
import subprocess
import sys
from pathlib import Path

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
