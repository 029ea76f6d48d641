"""An editor: the protocol's own Python client, connected to the real `graph-agent acp` in a process of its own.

async with Editor.start(command) as editor:
    session = await editor.new_session()
    editor.answers["c1"] = "approve"     # else a permission request waits
    assert await session.prompt("do it") == "end_turn"
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from acp import RequestError, connect_to_agent, schema, text_block
from acp.client.connection import ClientSideConnection
from acp.connection import StreamEvent

from tests.fakes.forked_command import ForkedProcess, start_forked
from tests.scenarios.command import Command

__all__ = ["DISMISS", "Editor", "EditorSession", "error_of"]

DISMISS = "(dismiss)"
"""In place of an option: close the question without an answer."""
_LONGEST_S = 30.0
_MOST_LINE = 64 * 1024 * 1024


def error_of(failure: RequestError) -> tuple[int, str]:
    """Code and message."""
    return failure.code, str(failure)


@dataclass
class EditorSession:
    """One session as the editor sees it."""

    editor: "Editor"
    id: str
    opened: dict[str, Any]
    """What the response said."""

    async def prompt(self, *blocks: Any) -> str:
        """Send a prompt, texts or content blocks; returns the stop reason."""
        content = [text_block(block) if isinstance(block, str) else block for block in blocks]
        response = await self.editor.agent.prompt(session_id=self.id, prompt=content)
        return response.stop_reason

    def begin(self, *blocks: Any) -> "asyncio.Task[str]":
        """Send a prompt and do not wait."""
        return asyncio.get_running_loop().create_task(self.prompt(*blocks))

    def updates(self, kind: str) -> list[dict[str, Any]]:
        """The updates of a kind that have arrived."""
        return [one for session, one in self.editor.updates if session == self.id and one["sessionUpdate"] == kind]

    def said(self) -> str:
        """All that the agent has said."""
        return "".join(one["content"]["text"] for one in self.updates("agent_message_chunk"))

    def call(self, call_id: str) -> dict[str, Any]:
        """A tool call with its updates applied."""
        known: dict[str, Any] = {}
        for kind in ("tool_call", "tool_call_update"):
            for update in self.updates(kind):
                if update["toolCallId"] == call_id:
                    known |= update
        return known


@dataclass
class Editor:
    """A client with its agent."""

    command: Command
    program: ForkedProcess
    agent: ClientSideConnection
    updates: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Every permission request."""
    answers: dict[str, str] = field(default_factory=dict)
    """By call: the option to choose. A request without one waits until there is one."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    """Everything that the agent has sent."""
    buffers: dict[Path, str] = field(default_factory=dict)
    """The text of each file that is open; others are opened from the disk."""
    withdrawn: int = 0

    @classmethod
    @asynccontextmanager
    async def start(cls, command: Command, *arguments: str, gives_text: bool = False) -> AsyncIterator[Self]:
        """Start an agent, initialized; in the end its input is closed, and it must end by itself.

        Args:
            gives_text: whether the editor offers to read files for the agent.
        """
        program = start_forked(("acp", *arguments), command.workspace, command.env, command.folder / "stderr")
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_MOST_LINE)
        with os.fdopen(program.stdout, "rb") as out, os.fdopen(program.stdin, "wb") as source:
            reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), out)
            transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, source)
            writer = asyncio.StreamWriter(transport, protocol, None, loop)
            editor = cls(command, program, None)  # type: ignore[arg-type]  # it is set in the next line
            editor.end_input = transport.close
            editor.agent = connect_to_agent(
                _Client(editor),  # type: ignore[arg-type]  # a client of few methods
                writer,
                reader,
                use_unstable_protocol=True,
                observers=[editor.observe],
            )
            try:
                offers = schema.ClientCapabilities(fs=schema.FileSystemCapabilities(read_text_file=gives_text))
                await editor.agent.initialize(protocol_version=1, client_capabilities=offers)
                yield editor
            finally:
                transport.close()
                editor.exit_code = await asyncio.to_thread(program.wait)
                with contextlib.suppress(ConnectionError):
                    await editor.agent.close()
                reading.close()

    exit_code: int | None = None
    end_input: Callable[[], None] = lambda: None

    def observe(self, event: StreamEvent) -> None:
        """Note a message of the agent."""
        if event.direction.value == "incoming":
            self.messages.append(event.message)
            self.withdrawn += event.message.get("method") == "$/cancel_request"

    async def new_session(self, **params: Any) -> EditorSession:
        """A new session in the workspace."""
        params = {"cwd": str(self.command.workspace), "mcp_servers": [], **params}
        response = await self.agent.new_session(**params)
        return EditorSession(self, response.session_id, response.model_dump(by_alias=True))

    async def load(self, session_id: str, *, resumes: bool = False) -> EditorSession:
        """A session that exists; `resumes` without its conversation."""
        open_it = self.agent.resume_session if resumes else self.agent.load_session
        response = await open_it(session_id=session_id, cwd=str(self.command.workspace), mcp_servers=[])
        return EditorSession(self, session_id, response.model_dump(by_alias=True))

    def close(self) -> None:
        """Close the agent's input, as an editor that is closed does."""
        self.end_input()

    def kill(self) -> None:
        """Kill -9 the agent."""
        self.program.kill()

    async def until(self, holds: Callable[[], Any], what: str = "") -> None:
        """Wait until something holds.

        Raises:
            AssertionError: it does not; the message has what was sent last.
        """
        for _ in range(int(_LONGEST_S / 0.01)):
            if holds():
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{what} did not happen; the last messages: {self.messages[-5:]}")

    async def question(self, number: int = 0) -> dict[str, Any]:
        """A permission request, once it has arrived."""
        await self.until(lambda: len(self.asked) > number, f"question {number}")
        return self.asked[number]


class _Client:
    """What the agent may ask of an editor."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def on_connect(self, conn: Any) -> None:
        """Nothing to prepare."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Keep it."""
        self._editor.updates.append((session_id, update.model_dump(by_alias=True, exclude_none=True)))

    async def request_permission(
        self, options: Sequence[Any], session_id: str, tool_call: Any, **_: Any
    ) -> schema.RequestPermissionResponse:
        """Choose as the test says."""
        call = tool_call.model_dump(by_alias=True, exclude_none=True)
        shown = [one.model_dump(by_alias=True, exclude_none=True) for one in options]
        self._editor.asked.append({"sessionId": session_id, "toolCall": call, "options": shown})
        answers, key = self._editor.answers, call["toolCallId"]
        await self._editor.until(lambda: key in answers or "*" in answers, f"an answer about {key}")
        chosen = answers.get(key) or answers["*"]
        if chosen == DISMISS:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        if chosen == "(first)":
            chosen = shown[0]["optionId"]
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def read_text_file(self, path: str, session_id: str, **_: Any) -> schema.ReadTextFileResponse:
        """The text as the user sees it."""
        del session_id
        text = self._editor.buffers.get(Path(path))
        if text is None and not Path(path).exists():
            raise RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=Path(path).read_text() if text is None else text)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Other notifications are ignored, as the protocol says."""


def stderr_of(command: Command) -> str:
    """What the agents of a command have written beside the protocol."""
    path = Path(command.folder / "stderr")
    return path.read_text(encoding="utf-8") if path.exists() else ""
