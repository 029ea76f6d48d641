import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

import pytest

import graph_agent
from graph_agent import open_session
from graph_agent.errors import ThreadHeld, UsageError
from graph_agent.session.session import Session
from tests.architecture.checkout import ROOT
from tests.scenarios.command import Command

WHOLE, AFTER_A_KILL = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/embedding.md").read_text(encoding="utf-8"), re.DOTALL
)


def program(text: str, folder: Path, environment: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Run a program of the page as a stranger would; returns its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        cwd=folder,
        env=environment,
        input="y\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.slow
def test_the_programs_of_the_page_work_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/prices.py").write_text("print('total 8.35')\n")
    command = Command(tmp_path)
    waiting = command("run", "run touch hi", "--thread", "left", "--workspace", str(tmp_path / "project"))

    asked, answered = program(WHOLE, tmp_path, command.env)
    code, told = program(AFTER_A_KILL, tmp_path, command.env, "left")

    assert waiting.returncode == 3
    assert (asked, "bash {'command': 'python3 prices.py'} [y/n] " in answered) == (0, True)
    assert re.search(r"^done [0-9a-f]{32} .*total 8\.35\n", answered, re.MULTILINE | re.DOTALL)
    # Its risk is lower where there is a sandbox.
    assert (code, re.sub("has .* risk: it .*", "…", told)) == (0, "approval bash bash …\ndone\n")


async def test_a_session_is_closed_when_its_block_is_left(tmp_path: Path) -> None:
    async with open_session(workspace=str(tmp_path), thread_id="t") as session:
        assert_type(session, Session)
        with pytest.raises(ThreadHeld):
            await open_session(workspace=tmp_path, thread_id="t")

    again = await open_session(workspace=tmp_path, thread_id="t")
    await again.close()

    assert again.thread_id == "t"


async def test_a_session_is_closed_when_its_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_session(workspace=tmp_path, thread_id="t"):
            raise ZeroDivisionError

    await (await open_session(workspace=tmp_path, thread_id="t")).close()


async def test_a_session_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        async with open_session(workspace=tmp_path / "none"):
            pass


def test_the_name_is_there_before_anything_behind_it_is_loaded() -> None:
    code, printed = program(
        "import sys; from graph_agent import open_session; print([m for m in sys.modules if 'graph_agent' in m])",
        ROOT,
        {},
    )

    assert (code, printed) == (0, "['graph_agent']\n")
    assert graph_agent.open_session.__doc__


def test_every_package_that_is_installed_shows_its_types() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    packages = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert [name for name in packages if not (ROOT / name / "py.typed").is_file()] == []
