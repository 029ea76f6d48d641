"""Follows a page of the docs: types what its console blocks type, and sets what comes beside what they show."""

import json
import re
import runpy
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs._generate.recording import normalize
from graph_agent.cli.main import app
from graph_agent.errors import ConfigError
from tests.architecture.checkout import ROOT
from tests.scenarios.command import Command, until

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_TAIL = re.compile(r"(?<![0-9a-f])[0-9a-f-]*([0-9a-f]{8})\b")


def steps_of(page: str) -> list[tuple[str, str]]:
    """Each command of the page's console blocks with what it printed."""
    return [(step[1], step[2]) for block in _BLOCK.findall(page) for step in _STEP.finditer(block)]


@dataclass
class Follower:
    """One reader of one page; ids that were made up for the page stand for those that come in their place."""

    type_in: Callable[[str], str]
    """Runs a command line; what it prints."""
    _shown: str = ""
    _came: str = ""
    _ids: dict[str, str] = field(default_factory=dict)

    def follow(self, steps: list[tuple[str, str]]) -> tuple[str, str]:
        """All that the page shows, and all that came, without what differs from run to run."""
        for command, shown in steps:
            typed = self._with_own_ids(command)
            came = self.type_in(typed)
            self._ids |= dict(zip(_tails(shown), _tails(came), strict=False))
            self._shown += f"$ {command}\n{shown}"
            self._came += f"$ {typed}\n{came}"
        return _without_ages(normalize(self._shown)), _without_ages(normalize(self._came))

    def _with_own_ids(self, command: str) -> str:
        for theirs, ours in self._ids.items():
            command = command.replace(theirs, ours)
        return command


def _without_ages(text: str) -> str:
    """With one age in the place of all, as wide as that, and the heading above it."""
    return re.sub(
        r"\b(WHEN|just now|\d+ \w+ ago) +", lambda found: "WHEN  " if found[1] == "WHEN" else "now  ", text
    )


def _tails(text: str) -> Iterator[str]:
    return iter(dict.fromkeys(_TAIL.findall(text)))


ROW = re.compile(r"^\| `(\w+)` `(\{.*\})` \| (allow|ask|deny) \|$", re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TOML = re.compile(r"^```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def said(done: "subprocess.CompletedProcess[str]") -> str:
    """What a person sees: news, and then the answer."""
    return done.stderr + done.stdout


def test_recovery_after_a_crash_goes_as_its_page_shows(tmp_path: Path) -> None:
    command = Command(tmp_path)

    def type_in(line: str) -> str:
        words = shlex.split(line)
        if "kill" not in words:
            return said(command(*words[1:]))
        agent = subprocess.Popen(
            command.argv(*words[1 : words.index("&")]),
            cwd=command.workspace,
            env=command.env,
            stderr=subprocess.PIPE,
        )
        until(lambda: any(one.stat().st_size for one in (tmp_path / "home").rglob("*.out")))
        agent.send_signal(signal.SIGKILL)
        agent.communicate()
        return ""

    shown, came = Follower(type_in).follow(steps_of(page("recovery.md")))

    assert came == shown


def test_looking_into_a_thread_shows_what_its_page_shows(tmp_path: Path) -> None:
    command = Command(tmp_path, extra_env={"COLUMNS": "100"})
    shutil.copy(ROOT / "docs/sample/basket.txt", command.workspace)
    for prompt in ("read basket.txt", "run python prices.py"):
        command("run", "--thread", "shop", prompt)

    shown, came = Follower(lambda line: said(command(*shlex.split(line)[1:]))).follow(steps_of(page("inspect.md")))

    assert came == shown


def test_a_thread_of_another_program_is_read_as_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [program] = PYTHON.findall(page("other-graphs.md"))
    (tmp_path / "report.py").write_text(program)
    runpy.run_path("report.py")

    def type_in(line: str) -> str:
        return CliRunner().invoke(app, shlex.split(line)[1:], env={"COLUMNS": "100"}).output

    shown, came = Follower(type_in).follow(steps_of(page("other-graphs.md")))

    assert came == shown


@pytest.fixture
def ruled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's own config; the page's files lie in the current one."""
    for name in ("secrets/key", "docs/a.md", "src/a.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_the_rules_of_the_page_decide_as_its_table_says(ruled: Path) -> None:
    (ruled / "config.toml").write_text(TOML.findall(page("rules.md"))[0])
    rows = ROW.findall(page("rules.md"))

    answers = [CliRunner().invoke(app, ["policy", "check", tool, given, "--json"]) for tool, given, _ in rows]

    assert len(rows) == 13
    decided = [json.loads(answer.stdout)["decision"] for answer in answers]
    assert [(tool, given, decision) for (tool, given, _), decision in zip(rows, decided, strict=True)] == rows


def test_a_rule_of_the_page_proves_itself_and_one_that_does_not_is_named(ruled: Path) -> None:
    proven = TOML.findall(page("rules.md"))[1]
    wrong = proven.replace('match = ["git commit -m x"]', 'match = ["git stash"]')

    outcomes = []
    for text in (proven, wrong):
        (ruled / "config.toml").write_text(text)
        outcomes.append(CliRunner().invoke(app, ["policy", "show"]))

    assert outcomes[0].exit_code == 0
    assert isinstance(outcomes[1].exception, ConfigError)
    assert "git stash" in str(outcomes[1].exception)
