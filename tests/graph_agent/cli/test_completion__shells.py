import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graph_agent.cli.completion import FILES, SHELLS, Offer, install_script, show_script, tell_offers
from graph_agent.errors import StorageError, UsageError
from tests.fakes.database_rows import Rows

_ROOT = Path(__file__).parents[3]
_ASK = """
source "$1"
COMP_LINE="$2" COMP_POINT=${#2} COMP_WORDBREAKS=$' \\t\\n"=:'
_graph_agent "$3" "${2##*[ :=]}" ""
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {"HOME": str(tmp_path), "GRAPH_AGENT_HOME": str(tmp_path / "agent")}.items():
        monkeypatch.setenv(name, value)
    for name in ("XDG_CONFIG_HOME", "ZDOTDIR", "GRAPH_AGENT_DB"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_bash_asks_this_program_and_evaluates_nothing_of_what_comes_back(home: Path) -> None:
    (home / "agent/data").mkdir(parents=True)
    rows = Rows(home / "agent/data/graph-agent.db")
    for thread in ("my thread", "$(touch pwned)", "my:one"):
        rows.thread(thread, title="`touch pwned`\x1b[2J\t:files")
    rows.close()
    program, script = home / "graph-agent", home / "script"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={_ROOT} exec {sys.executable} -m graph_agent "$@"\n')
    program.chmod(0o700)
    script.write_text(SHELLS["bash"])

    def ask(line: str) -> list[str]:
        words = ["bash", "--norc", "-c", _ASK, "bash", str(script), line, str(program)]
        return subprocess.run(words, cwd=home, capture_output=True, text=True, check=True).stdout.splitlines()

    assert ask("graph-agent tools sh") == ["show"]
    assert sorted(ask("graph-agent resume ")) == ["'$(touch pwned)'", "'my thread'", "my:one"]
    assert ask("graph-agent resume my:") == ["one"]
    assert ask("graph-agent run --output=str") == ["stream-json"]
    assert not (home / "pwned").exists()


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_what_the_installed_script_asks_this_program_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = home / "graph-agent"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={_ROOT} exec {sys.executable} -m graph_agent "$@"\n')
    program.chmod(0o700)
    (home / "a file").touch()
    monkeypatch.setenv("PATH", str(home), prepend=":")
    install_script("fish")

    def ask(line: str) -> list[str]:
        words = ["fish", "-c", f"complete -C '{line}'"]
        shown = subprocess.run(words, cwd=home, capture_output=True, text=True, check=True).stdout
        return [offer.partition("\t")[0] for offer in shown.splitlines()]

    assert ask("graph-agent run --output str") == ["stream-json"]
    assert ask("graph-agent threads import a") == ["a file"]


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_each_script_is_one_its_shell_can_read(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(SHELLS[shell])

    assert subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.parametrize(("shell", "start"), [("bash", ".bashrc"), ("zsh", ".zshrc")])
def test_installing_adds_one_line_to_what_the_shell_reads_and_keeps_the_rest(
    home: Path, monkeypatch: pytest.MonkeyPatch, shell: str, start: str
) -> None:
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    (home / "dotfiles").write_bytes(b"alias a=b # \xff")
    (home / start).symlink_to("dotfiles")

    for _ in range(2):
        install_script("")

    script = home / f"agent/data/completion.{shell}"
    assert (home / "dotfiles").read_bytes() == b"alias a=b # \xff\nsource %s\n" % str(script).encode()
    assert script.read_text(encoding="utf-8") == f"{SHELLS[shell]}\n"


def test_fish_finds_its_script_by_itself(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install_script("fish")

    script = home / ".config/fish/completions/graph-agent.fish"
    assert (script.read_text(encoding="utf-8"), capsys.readouterr().out) == (
        f"{SHELLS['fish']}\n",
        f"wrote {script}\n",
    )


def test_a_shell_without_a_script_and_a_place_that_cannot_be_written_are_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/csh")
    (home / ".bashrc").mkdir()

    with pytest.raises(UsageError, match="'csh'; name one of: bash, zsh, fish"):
        show_script("")
    with pytest.raises(StorageError, match="bashrc cannot be written"):
        install_script("bash")


def test_offers_are_lines_that_no_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    tell_offers([Offer("a b", "x\x1b[2J\ty"), Offer("c\nd"), Offer("e")], is_line=True)
    tell_offers([FILES], is_line=True)
    tell_offers([Offer("a b")], is_line=False)

    assert capsys.readouterr().out == "'a b'\tx\\x1b[2J\\ty\ne\n:files\na b\n"
