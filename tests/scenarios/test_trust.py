import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.bench import Bench
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.scenarios.command import Command, scripted

_DEMO = Path(__file__).parents[1] / "fakes" / "mcp_demo.py"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A project that brings a rule, a server and instructions."""
    with FakeOpenAI([TC("c1", "mcp__hub__ping", "{}"), TXT("ok")], strict=True) as server:
        made = Bench(tmp_path, server, {})
        (made.workspace / ".graph-agent").mkdir()
        (made.workspace / ".graph-agent" / "config.toml").write_text(
            f'[policy]\nallow = ["mcp__hub__*"]\n'
            f"[mcp_servers.hub]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(_DEMO))}]\n"
        )
        made.write(AGENTS_md="Always use tabs.\n")
        yield made


def _system(bench: Bench, number: int) -> str:
    return str(bench.server.bodies[number]["messages"][0]["content"])


def test_a_headless_run_ignores_what_a_project_says_and_tells_it_once(bench: Bench) -> None:
    ran = bench.ask("go")

    assert (ran.code, ran.err.count("folder not trusted"), "use tabs" in _system(bench, 0)) == (0, 1, False)
    assert "There is no tool 'mcp__hub__ping'" in bench.results(2)[0]


def test_trust_for_one_run_turns_on_rule_server_and_instructions_and_keeps_nothing(bench: Bench) -> None:
    ran = bench.ask("go", "--trust")

    listed = bench.command("config", "trust", "--list").stdout
    assert (ran.ending, bench.results(2), "Always use tabs." in _system(bench, 0)) == ((0, "ok"), ["pong"], True)
    assert ("folder not trusted" in ran.err, listed) == (False, "No trusted folders.\n")


def test_a_trusted_folder_counts_in_every_later_run_until_it_changes(bench: Bench) -> None:
    bench.command("config", "trust", "--yes")
    shown = {item["key"]: item for item in bench.command.json("config", "show")["settings"]}

    ran = bench.ask("go")
    bench.write(AGENTS_md="Always use blanks.\n")
    changed = bench.ask("again")

    assert (shown["policy.allow"]["value"], shown["policy.allow"]["layer"]) == (["mcp__hub__*"], "project")
    assert (ran.ending, bench.results(2), "folder not trusted" in ran.err) == ((0, "ok"), ["pong"], False)
    assert "folder not trusted since it changed" in changed.err
    assert "blanks" not in _system(bench, -1)


def test_the_chat_asks_once_before_anything_else(bench: Bench) -> None:
    first = bench.chat("chat")
    first.plays("mcp_servers.hub", "Trust this folder?", "<y", "> ", "<go", "pong", "ok", "^\x04")
    first.ends()
    second = bench.chat("chat")
    second.plays("> ", "^\x04")

    assert (second.ends(), "Trust this folder?" in second.output) == (0, False)
    assert "Always use tabs." in _system(bench, 0)


@pytest.mark.parametrize(("command", "is_new"), [("/clear", True), ("/fork", False)])
def test_a_thread_that_a_running_chat_opens_asks_about_files_that_are_new(
    tmp_path: Path, command: str, is_new: bool
) -> None:
    with scripted(tmp_path, [TXT("pong"), TXT("fine")]) as program:
        chat = program.chat("chat", "ping")
        chat.plays("pong", "mode default")
        (program.workspace / "AGENTS.md").write_text("Always use tabs.")
        chat.plays(f"<{command}", "Trust this folder?", "<y", "Return to the previous", "<go", "fine", "^\x04")
        chat.ends()
        [system] = [one["content"] for one in program.server.bodies[-1]["messages"] if one["role"] == "system"]

    # A copy keeps the instructions that its thread began with.
    assert ("Always use tabs." in system, "ignored" in chat.output) == (is_new, False)


def test_leaving_the_question_leaves_the_chat_and_opens_nothing(bench: Bench) -> None:
    chat = bench.chat("chat")
    chat.plays("Trust this folder?", "^\x03")

    assert (chat.ends(), bench.server.bodies) == (0, [])
    assert Command(bench.folder).json("threads", "list") == {"threads": []}
