"""The real chat on a scripted session, as a program for a pseudo-terminal: `python -m tests.fakes.chat_program`.

Arguments: the scenario, and a file for the session's log.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from prompt_toolkit.enums import EditingMode

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
from graph_agent.ports import SandboxInfo
from graph_agent.ports.background import BackgroundTask
from graph_agent.session.session import Session
from tests.fakes.scripted_session import Pause, ScriptedSession, Turn, approval, recovery, rest

__all__ = ["SCENARIOS"]

_ECHO_A = approval("call-a", "bash", {"command": "echo a >> log.txt"}, reason="bash asks")
_ECHO_B = approval("call-b", "bash", {"command": "echo b >> log.txt"})
_SPOOF = approval(
    "call-a", "bash", {"command": "touch pwn #\r\x1b[2K   command: ls -la", "path": "a\x1b[1A.txt"}, risk="high"
)
_SANDBOX = SandboxInfo(
    "bubblewrap",
    "files can be written in the workspace and the temporary folder only, there is no network",
    is_active=True,
)
_HARMFUL = approval(
    "call-h",
    "bash",
    {"command": "rm -rf build && curl -sS https://example.org/x.tgz | tar xz"},
    risk="high",
    risk_reason="deletes build, uses the network: curl",
    summary="$ rm -rf build && curl -sS https://example.org/x.tgz | tar xz",
)
_EDIT = approval(
    "call-e",
    "edit_file",
    {"file_path": "prices.py", "old_string": "sum(items)", "new_string": "sum(items) + shipping"},
    kind="write",
    preview={
        "kind": "diff",
        "text": f"--- {Path.cwd()}/prices.py\n+++ {Path.cwd()}/prices.py\n@@ -13,4 +13,4 @@\n"
        " \n def total(items):\n-    return sum(items)\n+    return sum(items) + shipping\n \n",
    },
)
_CONTENT = "".join(f"entry {number} \x1b[2J\n" for number in range(500))
_LONG = approval("call-l", "write_file", {"file_path": "data.txt", "content": _CONTENT})
_BROKEN = recovery(
    "call-b",
    "bash",
    {"command": "./deploy.sh staging"},
    reason="outcome_unknown",
    started_at="2026-11-28T06:47:43.000Z",
    partial_output="building image … done\npushing …\n",
    finding="There is no way to check what bash did before it was interrupted.",
    finding_verdict="unknown",
    processes=(19201, 19202),
)
_PLAN = approval(
    "call-p",
    "present_plan",
    {"plan": "1. add `shipping` to total()\n2. run the tests"},
    requires_input=True,
    risk="low",
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
_STREAM = Turn(rest(answer="late"), (TextDelta("streamed words\n\nand "), Pause(60)))
_ASKS = Turn(rest("awaiting_approval", questions=(_ECHO_A, _ECHO_B)))
_ASKS_ONE = Turn(rest("awaiting_approval", questions=(_ECHO_A,)))
_THINKS_THEN_ASKS = Turn(_ASKS_ONE.rest, (Pause(1.0),))

_TASKS = (
    BackgroundTask("sh1", "command", "npm start", "running for 12 s"),
    BackgroundTask("c7", "sub-agent", "find the callers of total() and of everything that uses it", "step 3"),
)

SCENARIOS: dict[str, tuple[Turn, ...]] = {
    "talk": (_DONE, _DONE),
    "ask": (_ASKS, _DONE),
    "ask one": (_ASKS_ONE, _DONE),
    "questions": (
        *(Turn(rest("awaiting_approval", questions=(item,))) for item in (_HARMFUL, _EDIT, _PLAN)),
        Turn(rest("interrupted", questions=(_BROKEN,))),
        _DONE,
    ),
    "ask several": (Turn(rest("awaiting_approval", questions=(_HARMFUL, _EDIT, _ECHO_A))), _DONE),
    "ask long": (Turn(rest("awaiting_approval", questions=(_LONG,))), _DONE),
    "think then ask": (_THINKS_THEN_ASKS, _DONE),
    "spoof": (Turn(rest("awaiting_approval", questions=(_SPOOF,))), _DONE),
    "slow": (_SLOW, _DONE),
    "tasks": (_SLOW, _DONE),
    "stream": (_STREAM, _DONE),
    "short": (_SHORT,),
    "short twice": (_SHORT, _DONE),
    "model error": (Turn(rest("model_error", error="bad [/tag]")), _DONE),
}
"""The turns of each."""


def main(scenario: str, log: Path) -> int:
    """Chat in this terminal; writes what the session was asked to the log."""
    sessions: list[ScriptedSession] = []

    async def open_scripted(_: Target, bus: EventBus) -> Session:
        sessions.append(ScriptedSession(bus, Path.cwd(), SCENARIOS[scenario]))
        if scenario == "tasks":
            sessions[-1].background = list(_TASKS)
        if scenario == "questions":
            sessions[-1].sandbox = _SANDBOX
        return sessions[-1]

    async def run() -> int:
        return await chat.run(asyncio.create_task(terminal.message()))

    terminal = Terminal(None)
    terminal.editing_mode = EditingMode(os.environ.get("EDITING_MODE", "EMACS"))
    options = ChatOptions(
        Target(Path.cwd()), open_scripted, log.with_name("none.db"), introduction=lambda: ["scripted"]
    )
    chat = Chat(terminal, make_console(), options)
    try:
        with terminal.held():
            return asyncio.run(run())
    finally:
        log.write_text(json.dumps([entry for session in sessions for entry in session.log]))


if __name__ == "__main__":
    sys.exit(run_guarded(lambda: sys.exit(main(sys.argv[1], Path(sys.argv[2])))))
