import asyncio
import io

import pytest
from prompt_toolkit.input import create_pipe_input

from graph_agent.cli.chat.turn_runner import TurnRunner
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.console import make_console
from graph_agent.cli.render.turn_display import TurnDisplay


@pytest.mark.parametrize(("typed", "agrees"), [("y\r", True), ("YES\r", True), ("\r", False), ("\x03", False)])
async def test_whoever_does_not_say_yes_once_asked_does_not_agree_and_what_was_typed_before_is_kept(
    typed: str, agrees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_PLAIN", "1")
    console = make_console(io.StringIO())
    with create_pipe_input() as keys:
        terminal = Terminal(None, source=keys)
        story = TurnDisplay(console)
        keys.send_text("yes\r")
        asyncio.get_running_loop().call_later(0.02, keys.send_text, typed)

        agreed = await TurnRunner(terminal, story).confirm()
        keys.send_text("and more\r")

        assert (agreed, await terminal.message()) == (agrees, "yes\nand more")
