import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import gc, sys
from pathlib import Path

searches = []
gc.callbacks.append(lambda phase, told: searches.append((phase, told["generation"])))
usual = gc.get_threshold()
from graph_agent.__main__ import main

sys.argv = ["graph-agent", "run", "list files"]
main()
told = ("start", 2) in searches, gc.get_freeze_count() > 0, gc.get_threshold() == usual
Path("told").write_text(str(told))
"""


def test_loading_is_never_searched_for_garbage_and_what_was_loaded_is_searched_no_more(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()

    subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=tmp_path / "work",
        env={**os.environ, "GRAPH_AGENT_HOME": str(tmp_path / "home")},
        capture_output=True,
        check=True,
    )

    assert (tmp_path / "work/told").read_text() == "(False, True, True)"
