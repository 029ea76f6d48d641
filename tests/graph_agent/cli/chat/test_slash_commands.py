import io
from pathlib import Path

import pytest
from prompt_toolkit.input import DummyInput
from rich.console import Console

from graph_agent.cli.chat.command_table import COMMANDS, is_command
from graph_agent.cli.chat.shell_escape import UserPrograms
from graph_agent.cli.chat.slash_commands import ChatAction, QuitChat, SlashCommands
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.events import EventBus
from tests.fakes.database_rows import Rows
from tests.fakes.scripted_session import ScriptedSession


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("/help", True),
        ("help", False),
        ("/a\nb", False),
        ("a /help", False),
        ("/etc/hosts is gone", False),
        ("/", True),
        ("!ls\n", True),
    ],
)
def test_a_command_is_one_line_behind_a_slash_or_all_behind_an_exclamation_mark(text: str, is_one: bool) -> None:
    assert is_command(text) == is_one


class _Talk:
    def __init__(self, folder: Path) -> None:
        self.stream = io.StringIO()
        self.session = ScriptedSession(EventBus(), folder)
        console = Console(file=self.stream, width=1000, markup=False, highlight=False)
        programs = UserPrograms(Terminal(None, source=DummyInput()), TurnDisplay(console))
        self.slash = SlashCommands(self.session, console, folder / "none.db", programs)

    async def says(self, text: str) -> str:
        await self.slash.run(text)
        return self.stream.getvalue()


async def test_help_names_every_command(tmp_path: Path) -> None:
    said = await _Talk(tmp_path).says("/help")

    assert [name for name in COMMANDS if f"/{name}" not in said] == []


async def test_quit_leaves(tmp_path: Path) -> None:
    with pytest.raises(QuitChat):
        await _Talk(tmp_path).slash.run("/quit")


@pytest.mark.parametrize(
    ("line", "action", "said"),
    [
        ("/retry", ChatAction("retry"), ""),
        ("/compact", ChatAction("compact"), ""),
        ("/clear", ChatAction("switch"), ""),
        ("/resume abcd", ChatAction("resume", "abcd"), ""),
        ("/resume", ChatAction("resume"), ""),
        ("/rewind", ChatAction("rewind"), ""),
        ("/rewind abcd --force", ChatAction("rewind", "abcd --force"), ""),
        ("/tmp is full", ChatAction("send", "/tmp is full"), ""),
        (
            "/mode",
            None,
            (
                "mode: default\n"
                "  default      side effects need approval\n"
                "  acceptEdits  edits in the workspace run unasked\n"
                "  plan         only reads, and presents a plan\n"
                "  auto         a model reviews what would be asked\n"
                "  dontAsk      what would need approval is denied\n"
                "/mode NAME sets another, Shift-Tab the next of the first three.\n"
            ),
        ),
        ("/mode plan", None, "mode: plan\n"),
        ("/mode yolo", None, "Unknown mode 'yolo'. Choose one of default, acceptEdits, plan, auto, dontAsk.\n"),
        ("/[red]x\x1b", None, "Unknown command /[red]x\\x1b. /help lists the commands.\n"),
        ("/plan", None, "Unknown command /plan. Did you mean /mode plan?\n"),
        ("/thread", None, "Unknown command /thread. Did you mean /threads?\n"),
        ("/model", None, "model: scripted model\n  one\n  two\n/model NAME switches to another\n"),
        ("/model two", None, "model: two @ scripted (from your next message on)\n"),
    ],
)
async def test_a_command_says_or_asks_for_something(
    tmp_path: Path, line: str, action: ChatAction | None, said: str
) -> None:
    talk = _Talk(tmp_path)

    assert (await talk.slash.run(line), talk.stream.getvalue()) == (action, said)
    assert talk.session.mode == ("plan" if line == "/mode plan" else "default")


async def test_looking_before_anything_was_written_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = _Talk(tmp_path)

    said = [await talk.says(command) + capsys.readouterr().out for command in ("/threads", "/todo", "/inspect")]

    assert ["No threads yet" in said[0], "No todo list yet" in said[1], "there is nothing yet" in said[2]] == [
        True
    ] * 3


async def test_tools_and_memory_are_shown_as_their_commands_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = _Talk(tmp_path)
    talk.session.mode = "plan"

    await talk.says("/tools")
    await talk.says("/tools ls")
    await talk.says("/memory")

    shown = capsys.readouterr().out
    [bash] = [line.split() for line in shown.splitlines() if line.startswith("bash ")]
    assert bash[:5] == ["bash", "high", "execute", "builtin", "no"]
    assert ["List a folder" in shown, "Memory is empty." in shown] == [True, True]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/theme", "theme: auto (available: auto, dark, light, high-contrast)"),
        ("/theme light", "theme: light (for this chat; `theme` in config.toml is for all)"),
        ("/theme pink", "Unknown theme 'pink'. Choose one of auto, dark, light, high-contrast."),
    ],
)
async def test_the_theme_is_shown_and_set_for_this_chat(tmp_path: Path, line: str, said: str) -> None:
    assert await _Talk(tmp_path).says(line) == f"{said}\n"


async def test_what_was_allowed_always_is_shown_and_taken_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = _Talk(tmp_path)
    rows = Rows(tmp_path / "none.db")
    rows.grant("bash(ls)")
    rows.close()

    said = [await talk.says(command) for command in ("/policy", "/policy revoke 1", "/policy revoke 1", "/policy")]

    shown = capsys.readouterr().out
    assert [words in shown for words in ("bash(ls)", "Revoked permission 1", "no saved permissions")] == [True] * 3
    assert "Revoke one with: /policy revoke ID" in shown
    assert "No saved permission has the id '1'" in said[-1]


async def test_a_command_of_ones_own_is_listed_and_stands_for_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "commands").mkdir(parents=True)
    (tmp_path / "home" / "commands" / "review.md").write_text("---\nargument-hint: FILE\n---\nRead $1.")
    theirs = tmp_path / ".graph-agent" / "commands"
    theirs.mkdir(parents=True)
    (theirs / "ship.md").write_text("Ship it.")
    talk = _Talk(tmp_path)

    asked = await talk.slash.run("/review a.py")
    said = [(await talk.says(line)).splitlines()[-1] for line in ("/rewiew", "/ship")]
    listed = await talk.says("/help")

    assert asked == ChatAction("send", "Read a.py.")
    assert said[0] == "Unknown command /rewiew. Did you mean /review?"
    assert said[1].startswith("/ship is defined in ")
    assert "/review FILE  Read $1.\n" in listed
    assert "Not available, because their folder is not trusted: /ship\n" in listed


async def test_a_shell_line_runs_in_the_workspace_and_is_shared_on_wish(tmp_path: Path) -> None:
    talk = _Talk(tmp_path)
    (tmp_path / "here").touch()

    said = await talk.says("!ls")
    await talk.slash.run("/share")

    assert said.startswith("here\n")
    assert "$ ls\nhere\n" in talk.slash.programs.shared_output


async def test_a_message_is_written_in_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = _Talk(tmp_path)
    monkeypatch.setenv("VISUAL", "sed -i s/one/two/")

    asked = await talk.slash.run("/edit one")
    monkeypatch.setenv("VISUAL", "sed -i d")
    emptied = await talk.slash.run("/edit one")
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    missing = await talk.slash.run("/edit one")

    lines = talk.stream.getvalue().splitlines()
    assert (asked, emptied, missing) == (ChatAction("send", "two"), None, None)
    assert lines[:2] == ["two", "The message is empty. Nothing was sent."]
    assert "'/no/such/editor' could not be started" in lines[2]


async def test_init_asks_the_model_for_the_file_and_offline_drafts_a_missing_one(tmp_path: Path) -> None:
    talk, path = _Talk(tmp_path), tmp_path / "AGENTS.md"

    requests = [await talk.slash.run("/init")]
    talk.session.model_label = OFFLINE_LABEL
    said = await talk.says("/init")
    path.write_text("mine")
    said += await talk.says("/init")
    talk.session.model_label = "m"
    requests.append(await talk.slash.run("/init"))

    new, existing = (request.text.split("\n")[0] for request in requests if request)
    assert ("with write_file" in new, "with edit_file" in existing) == (True, True)
    assert (f"Wrote {path} from" in said, f"{path} exists and was not changed" in said) == (True, True)
    assert path.read_text() == "mine"
