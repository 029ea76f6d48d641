import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

import pytest
import typer

from graph_agent.cli.command_types import LineCompletion, print_completions
from graph_agent.cli.completion import (
    FREE_TEXT,
    ID_ARGUMENTS,
    ID_OPTIONS,
    SCRIPTS,
    SOURCES,
    complete_id,
    install_script,
    print_script,
)
from graph_agent.cli.main import app
from graph_agent.errors import StorageError, UsageError
from graph_agent.wording import format_age
from tests.fakes.database_rows import Rows, record_of
from tests.fakes.light_commands import asking

_ROOT = Path(__file__).parents[3]
_ASK_BASH = """
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


@pytest.fixture
def rows(home: Path) -> Iterator[Rows]:
    (home / "agent/data").mkdir(parents=True)
    rows = Rows(home / "agent/data/graph-agent.db")
    yield rows
    rows.close()


def complete(line: str) -> dict[str, str]:
    """The completed values with their help, as the shell that asks with a line gets them."""
    found = LineCompletion(typer.main.get_command(app), [f"graph-agent {line}"], is_line=True)
    answer = [one.partition("\t") for one in found.complete().splitlines()]
    return {value: about for value, _, about in answer}


def as_typer_does(line: str) -> str:
    text = LineCompletion(typer.main.get_command(app), [f"graph-agent {line}"], is_line=True).complete()
    return f"{text}\n" if text else ""


@pytest.mark.parametrize(
    ("line", "present", "absent"),
    [
        ("", {"chat", "threads"}, {"--help"}),
        ("thr", {"threads"}, {"chat"}),
        ("threads sh", {"show"}, {"list"}),
        ("run --out", {"--output"}, {"--mode"}),
        ("run --mode plan --", {"--output", "--approve"}, {"--mode"}),
        ("run --approve all --", {"--approve"}, set()),
        ("run --output ", {"text", "json", "stream-json"}, set()),
        ("run --output=s", {"--output=stream-json"}, {"--output=text"}),
        ("run -- --ou", set(), {"--output"}),
        ("recover --all ", {"retry", "done", "cancel"}, set()),
        ("calls --status exec", {"executing"}, {"error"}),
        ("chat --mode ", {"plan", "auto"}, set()),
        ("chat --effort ", {"high", "minimal"}, {"plan"}),
        ("config set model.b", {"model.base_url"}, {"mode"}),
        ("tools show gr", {"grep"}, {"bash"}),
        ("graph --format ", {"mermaid"}, {"svg"}),
        ("threads import ", {":files"}, set()),
        ("inspect --db=x", {":files"}, set()),
        ("nothing ", set(), {"chat"}),
        ("-c --mod", {"--mode", "--model"}, {"--json"}),
        ("--cont", {"--continue"}, set()),
        ("-m m --add-dir ", {":files"}, set()),
        ("run 'make it ", set(), {"chat"}),
    ],
)
def test_commands_options_and_values_are_completed(
    home: Path, line: str, present: set[str], absent: set[str]
) -> None:
    values = set(complete(line))

    assert (present - values, absent & values) == (set(), set())


def test_commands_and_options_come_with_their_help(home: Path) -> None:
    assert complete("threads rena")["rename"].startswith("Rename")
    assert "JSON" in complete("calls --js")["--json"]


def test_every_parameter_has_completion_values_or_takes_free_text() -> None:
    def parameters(command: Any, group: str) -> Iterator[tuple[str, Any]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from parameters(inner, name)
        if not hasattr(command, "commands"):
            yield from ((f"{group} {one.name}", one) for one in command.params)

    def takes_text(one: Any) -> bool:
        kind = one.type_descriptor.annotation
        return not getattr(one, "is_flag", False) and (get_origin(kind) or kind) in (str, list, Path)

    program: Any = typer.main.get_command(app)
    found = [
        (f"{group} {one.name}", one.name)
        for group, command in program.commands.items()
        for _, one in parameters(command, group)
        if takes_text(one)
    ]
    assert {name for key, name in found if key not in SOURCES and name not in SOURCES} == FREE_TEXT


def test_ids_are_completed_with_a_description(rows: Rows) -> None:
    asking(rows, "t1")
    later = "2026-11-28T11:00:00.000Z"
    rows.thread("t2", title="Broken", next_nodes=("human_approval",), checkpoint_id="c1", updated_at=later)
    rows.call(record_of("interrupted", "call_b"), "t2")

    threads = complete("resume ")
    assert (list(threads), threads["t2"]) == (["t2", "t1"], f"Broken ({format_age(later)}, unfinished)")
    assert complete("approvals approve ") == {"call_a": "make"}
    assert list(complete("run --resume t1 --approve ")) == ["call_a", "all"]
    assert list(complete("recover --retry ")) == ["call_b"]
    assert list(complete("recover --retry l_b")) == ["call_b"], "the end of an id will do"
    assert complete("policy revoke ") == {}


def test_a_call_id_of_several_threads_is_completed_with_its_thread(rows: Rows) -> None:
    asking(rows, "t1")
    asking(rows, "t2")

    assert sorted(complete("approvals reject ")) == ["t1:call_a", "t2:call_a"]


def test_checkpoints_are_offered_by_both_ends_of_their_ids_newest_first_and_a_forks_copy_once(rows: Rows) -> None:
    rows.thread("t1", title="Build it")
    rows.thread("t2", title="A fork")
    for thread, checkpoint in (("t1", "1f01-aa"), ("t1", "1f02-bb"), ("t2", "1f01-aa"), ("t2", "1f03-ab")):
        rows.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint, metadata)"
            " VALUES (?, ?, 'json', '{}', '{}')",
            thread,
            checkpoint,
        )

    assert list(complete("fork ").items()) == [
        ("1f03-ab", "A fork"),
        ("1f02-bb", "Build it"),
        ("1f01-aa", "Build it"),
    ]
    assert [list(complete(f"fork {typed}")) for typed in ("1f01", "bb", "b")] == [["1f01-aa"], ["1f02-bb"], []]


def test_a_chat_that_was_left_without_a_message_is_not_offered(rows: Rows) -> None:
    rows.thread("left")
    rows.thread("queued")
    rows.execute("INSERT INTO inbox (thread_id, text, queued_by, queued_at) VALUES ('queued', 'hello', '', '')")

    assert list(complete("threads show ")) == ["queued"]


def test_an_id_is_completed_alike_with_and_without_the_parser(rows: Rows) -> None:
    # Of each place where an id may be; Typer knows them all, the short way has two tables of them.
    asking(rows, "t1")
    rows.call(record_of("interrupted", "call_b"), "t1")

    def places(command: Any, path: str) -> Iterator[tuple[str, str]]:
        for name in getattr(command, "commands", {}):
            yield from places(command.commands[name], f"{path}{name} ")
        arguments = iter(one for one in getattr(command, "params", ()) if one.param_type_name == "argument")
        for one in (*(one for one in command.params if one.param_type_name == "option"), next(arguments, None)):
            if one is not None and one.name in _IDS and not hasattr(command, "commands"):
                yield from ((path if sign == one.name else f"{path}{sign} ", one.name) for sign in one.opts)

    found = dict(places(typer.main.get_command(app), ""))
    session = {f"{sign} ": name for sign, name in ID_OPTIONS[""].items()}
    assert found | session == {
        **{f"{command} ": name for command, name in ID_ARGUMENTS.items()},
        **{
            f"{command} {sign} ".lstrip(): name
            for command, options in ID_OPTIONS.items()
            for sign, name in options.items()
        },
    }
    for line in (*found, *session):
        assert as_typer_does(line) == complete_id("line", [f"graph-agent {line}"])


_IDS = frozenset((*ID_ARGUMENTS.values(), *(name for options in ID_OPTIONS.values() for name in options.values())))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "resume",
        "threads sh",
        "run --message --thread ",
        "run -- --thread ",
        "inspect --db a.db ",
        "inspect 't ",
        "resume -",
        "threads list --thread ",
        "recover t1 ",
        "run --thread=t",
        "nothing --thread ",
    ],
)
def test_all_but_a_plain_place_of_an_id_is_left_to_the_parser(rows: Rows, line: str) -> None:
    assert complete_id("line", [f"graph-agent {line}"]) is None


def test_an_option_for_an_id_may_follow_other_words(rows: Rows) -> None:
    rows.thread("one two", turns=1)

    line = "run --mode plan --thread o"
    assert complete_id("line", [f"graph-agent {line}"]) == as_typer_does(line) != ""
    assert complete_id("words", ["graph-agent", "resume", "o"]) == as_typer_does("resume o").replace("'", "")


def test_completion_reads_the_database_of_the_line(rows: Rows, tmp_path: Path) -> None:
    other = Rows(tmp_path / "other.db")
    other.thread("elsewhere", turns=1)
    other.close()

    assert list(complete(f"threads show --db {tmp_path / 'other.db'} ")) == ["elsewhere"]


def test_models_and_servers_of_the_settings_are_completed(rows: Rows, home: Path) -> None:
    rows.thread("t1", turns=1, model="llama @ 127.0.0.1:1")
    (home / "agent/config.toml").write_text(
        '[model]\nname = "big"\n[models.fast]\nname = "small"\n[mcp_servers.demo]\ncommand = "true"\n',
        encoding="utf-8",
    )

    assert complete("model use ") == {"fast": "profile", "big": "", "llama": ""}
    assert complete("mcp test ") == {"demo": ""}


@pytest.mark.parametrize("content", [None, b"no database", b"SQLite format 3\0"])
def test_an_unreadable_database_or_configuration_completes_nothing(home: Path, content: bytes | None) -> None:
    (home / "agent").mkdir()
    (home / "agent/config.toml").write_text("nonsense =", encoding="utf-8")
    if content is not None:
        (home / "a.db").write_bytes(content)

    lines = ("resume", "fork", "approvals approve", "recover --retry", "chat --model", "mcp test")
    for line in lines:
        command, sign, option = line.partition(" --")
        assert complete(f"{command} --db {home / 'a.db'}{sign}{option} ") == {}


@pytest.mark.slow
def test_bash_evaluates_nothing_of_what_comes_back(rows: Rows, home: Path) -> None:
    for thread in ("my thread", "$(touch pwned)", "my:one"):
        rows.thread(thread, title="`touch pwned`\x1b[2J\t:files")
    script = home / "script"
    script.write_text(SCRIPTS["bash"])
    program = _program(home)

    def ask(line: str) -> list[str]:
        words = ["bash", "--norc", "-c", _ASK_BASH, "bash", str(script), line, str(program)]
        return subprocess.run(words, cwd=home, capture_output=True, text=True, check=True).stdout.splitlines()

    assert sorted(ask("graph-agent resume ")) == ["'$(touch pwned)'", "'my thread'", "my:one"]
    assert ask("graph-agent resume my:") == ["one"]
    assert ask("graph-agent run --output=str") == ["stream-json"]
    assert not (home / "pwned").exists()


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_with_the_installed_script(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(home)
    (home / "a file").touch()
    monkeypatch.setenv("PATH", str(home), prepend=":")
    install_script("fish")

    def ask(line: str) -> list[str]:
        words = ["fish", "-c", f"complete -C '{line}'"]
        shown = subprocess.run(words, cwd=home, capture_output=True, text=True, check=True).stdout
        return [offer.partition("\t")[0] for offer in shown.splitlines()]

    assert ask("graph-agent run --output str") == ["stream-json"]
    assert ask("graph-agent threads import a") == ["a file"]


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_each_script_has_the_syntax_of_its_shell(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(SCRIPTS[shell])

    assert subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.parametrize(("shell", "start"), [("bash", ".bashrc"), ("zsh", ".zshrc")])
def test_installing_adds_one_line_to_the_start_file_and_keeps_its_content(
    home: Path, monkeypatch: pytest.MonkeyPatch, shell: str, start: str
) -> None:
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    (home / "dotfiles").write_bytes(b"alias a=b # \xff")
    (home / start).symlink_to("dotfiles")

    for _ in range(2):
        install_script("")

    script = home / f"agent/data/completion.{shell}"
    assert (home / "dotfiles").read_bytes() == b"alias a=b # \xff\nsource %s\n" % str(script).encode()
    assert script.read_text(encoding="utf-8") == f"{SCRIPTS[shell]}\n"


def test_fish_loads_its_script_without_a_line_in_a_start_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install_script("fish")

    script = home / ".config/fish/completions/graph-agent.fish"
    assert (script.read_text(encoding="utf-8"), str(script) in capsys.readouterr().out) == (
        f"{SCRIPTS['fish']}\n",
        True,
    )


def test_an_unsupported_shell_and_an_unwritable_file_are_errors(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/csh")
    (home / ".bashrc").mkdir()

    with pytest.raises(UsageError, match=r"'csh'.*bash, zsh, fish"):
        print_script("")
    with pytest.raises(StorageError, match="bashrc"):
        install_script("bash")


def test_no_line_can_control_the_terminal(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    for thread, title in (("a b", "x\x1b[2J\ty"), ("c\nd", "z")):
        rows.thread(thread, title=title)

    print_completions(typer.main.get_command(app), ["graph-agent", "resume", ""], is_line=False)

    assert capsys.readouterr().out.startswith("a b\tx\\x1b[2J\\ty (")


def _program(home: Path) -> Path:
    program = home / "graph-agent"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={_ROOT} exec {sys.executable} -m graph_agent "$@"\n')
    program.chmod(0o700)
    return program
