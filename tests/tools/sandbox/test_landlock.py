import json
import subprocess
import sys
from pathlib import Path

from tests.fakes.sandboxes import needs
from tools.sandbox import landlock
from tools.sandbox.landlock import FAILED, readable_around
from tools.sandbox.seccomp import landlock_filter


def _launched(rules: object, *program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(landlock.__file__), json.dumps(rules), *program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_everything_is_readable_around_what_is_hidden(tmp_path: Path) -> None:
    for name in ("a/key", "a/open", "b/open"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("a/key")

    found = readable_around([str(tmp_path / "a" / "key")])

    here = [path for path in found if path.startswith(str(tmp_path))]
    assert here == [str(tmp_path / "a" / "open"), str(tmp_path / "b")]
    assert str(Path("/usr")) in found
    assert readable_around([]) == ["/"]


def test_the_launcher_becomes_the_program_without_output(tmp_path: Path) -> None:
    needs("landlock")
    steps = landlock_filter(network=False).hex()
    rules = {"writable": [str(tmp_path)], "hidden": [], "closed": [], "network": False, "filter": steps}

    done = _launched(rules, "/bin/sh", "-c", f"echo x > {tmp_path}/in; echo x > /new; exit 7")

    assert (done.returncode, done.stdout, (tmp_path / "in").read_text()) == (7, "", "x\n")
    assert not Path("/new").exists()


def test_the_launcher_starts_nothing_when_it_cannot_confine_itself(tmp_path: Path) -> None:
    rules = {"writable": [], "hidden": [], "closed": [], "network": False, "filter": "0000"}

    done = _launched(rules, "/bin/sh", "-c", f"touch {tmp_path}/witness")

    assert (done.returncode, (tmp_path / "witness").exists()) == (FAILED, False)
    assert done.stderr.startswith("sandbox: could not be set up, and nothing was started: ")
    assert _launched([], "/bin/true").returncode != 0
