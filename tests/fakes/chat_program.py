"""The real chat on a scripted session, as a program for a pseudo-terminal: `python -m tests.fakes.chat_program`.

Arguments: the scenario, a file for the session's log, and a file with answers others gave.
"""

import asyncio
import json
import sys
from pathlib import Path

from graph_agent.cli.chat.chat import Chat, ChatOptions
from graph_agent.cli.exit_codes import run_guarded
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.console import make_console
from graph_agent.cli.session_target import Target
from graph_agent.events import (
    EventBus,
    ModelMessage,
    TextDelta,
    ToolCallCreated,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
)
from graph_agent.session.session import Session
from tests.fakes.scripted_session import Pause, ScriptedSession, Turn, approval, recovery, rest

__all__ = ["SCENARIOS"]

_ECHO_A = approval("call-a", "bash", {"command": "echo a >> log.txt"}, reason="bash asks")
_ECHO_B = approval("call-b", "bash", {"command": "echo b >> log.txt"})
_SPOOF = approval(
    "call-a", "bash", {"command": "touch pwn #\r\x1b[2K   command: ls -la", "path": "a\x1b[1A.txt"}, risk="high"
)
_BROKEN = recovery(
    "call-a",
    "bash",
    {"command": "make deploy"},
    reason="outcome_unknown",
    started_at="2026-11-28T01:02:03.000Z",
    partial_output="uploading 1 of 3\n",
    finding="cannot tell",
    finding_verdict="unknown",
)
_SAYS = (TextDelta("hel"), TextDelta("lo [red]x[/]"), ModelMessage("hello [red]x[/]"))
_DONE = Turn(rest(answer="hello [red]x[/]"), _SAYS)
_RUNS = (
    ToolCallCreated({"call_id": "c1", "tool_name": "bash", "summary": "sleep 60"}),
    ToolCallStarted("c1", "bash", "sleep 60"),
    ToolCallProgress("c1", "shell_output", "tick [bold]\n"),
)
_SLOW = Turn(rest(answer="late"), (*_RUNS, Pause(60)))
_SHORT = Turn(
    rest(answer="ok"),
    (
        *_RUNS,
        Pause(0.6),
        ToolCallFinished("c1", "bash", "error", "sleep 60", "[/'A', 1] [red]x[/]\n", "exit code 3"),
    ),
)
_ASKS = Turn(rest("awaiting_approval", questions=(_ECHO_A, _ECHO_B)))
_ASKS_ONE = Turn(rest("awaiting_approval", questions=(_ECHO_A,)))
_THINKS_THEN_ASKS = Turn(_ASKS_ONE.rest, (Pause(1.0),))

SCENARIOS: dict[str, tuple[Turn | None, tuple[Turn, ...]]] = {
    "talk": (None, (_DONE, _DONE)),
    "ask": (None, (_ASKS, _DONE)),
    "ask one": (None, (_ASKS_ONE, _DONE)),
    "think then ask": (None, (_THINKS_THEN_ASKS, _DONE)),
    "spoof": (None, (Turn(rest("awaiting_approval", questions=(_SPOOF,))), _DONE)),
    "slow": (None, (_SLOW, _DONE)),
    "short": (None, (_SHORT,)),
    "recover": (Turn(rest("interrupted", questions=(_BROKEN,))), (_DONE,)),
    "model error": (None, (Turn(rest("model_error", error="bad [/tag]")), _DONE)),
}
"""By name: what `start` comes back with, and the turns after it."""


async def _run(chat: Chat, prompting: Terminal | None) -> int:
    return await chat.run(asyncio.create_task(prompting.message()) if prompting else None)


def main(scenario: str, log: Path, elsewhere: Path) -> int:
    """Chat in this terminal; writes what the session was asked to the log."""
    opening, turns = SCENARIOS[scenario]
    sessions: list[ScriptedSession] = []

    async def open_scripted(_: Target, bus: EventBus) -> Session:
        session = ScriptedSession(bus, Path.cwd(), turns, opening=opening, elsewhere=elsewhere)
        session.refusals["call-a"] = "the command is empty"
        sessions.append(session)
        return session

    terminal = Terminal(None)
    target = Target(Path.cwd(), exists=opening is not None)
    options = ChatOptions(target, open_scripted, log.with_name("none.db"), introduction=lambda: ["scripted"])
    chat = Chat(terminal, make_console(), options)
    try:
        with terminal.held():
            return asyncio.run(_run(chat, None if target.exists else terminal))
    finally:
        log.write_text(json.dumps([entry for session in sessions for entry in session.log]))


if __name__ == "__main__":
    sys.exit(run_guarded(lambda: sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))))
