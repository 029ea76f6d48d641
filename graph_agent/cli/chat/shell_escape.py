"""Programs that the person runs from the chat: `!COMMAND` lines and an editor.

Their output is shown without terminal sequences, and sent to the model only when the person shares it.
"""

import asyncio
import codecs
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from graph_agent.cli.prompts.editor import edit_text
from graph_agent.cli.prompts.terminal import Terminal, TurnKeys
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.cli.supervisor import catch_signals
from graph_agent.cli.views.table import truncate
from graph_agent.wording import escape

__all__ = ["UserPrograms"]

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()][0-9A-Za-z]|[@-Z\\^_=>])")
_CHUNK = 64 * 1024
_LONGEST_LINE = 4_000
_KEPT_CHARS = 30_000
_DRAIN_S = 0.2
"""How long output is read after the command has ended: a background process may hold it open."""
_GRACE_S = 2.0
_TICK_S = 0.1
_NAME_COLUMNS = 30
"""How much of the status line the command takes."""


class UserPrograms:
    """The programs of one chat."""

    def __init__(self, terminal: Terminal, display: TurnDisplay) -> None:
        self._terminal = terminal
        self._display = display
        self._last = ""
        self._shared = ""
        self._is_hinted = False

    async def run(self, line: str, folder: Path) -> None:
        """Run a line in the user's shell until it ends; Ctrl-C and Esc end it alone."""
        if not line:
            self._say("!COMMAND runs a line in your shell; /share sends its output to the model", "yellow")
            return
        kept: list[str] = []
        try:
            code = await self._run(line, folder, kept)
        except (OSError, ValueError) as error:  # ValueError: a NUL character, which a paste may hold
            self._say(f"The command could not be started: {getattr(error, 'strerror', None) or error}", "yellow")
            return
        if code:
            ending = f"[ended by signal {-code}]" if code < 0 else f"[exit code {code}]"
            self._say(ending, "yellow")
            kept.append(ending)
        output = "\n".join(kept)
        omitted = len(output) - _KEPT_CHARS
        if omitted > 0:
            output = f"[… {omitted} characters left out]\n{output[-_KEPT_CHARS:]}"
        self._last = f"$ {line}\n{output}"
        if not self._is_hinted:
            self._is_hinted = True
            self._say("/share sends this to the model with your next message", "dim")

    async def edit(self, text: str) -> str:
        """Open a text in the person's editor; returns it as saved.

        Raises:
            EditFailed: the editor could not be run, or failed.
        """
        with self._terminal.given_away():
            return await edit_text(text)

    def share(self) -> None:
        """Send the last line and its output with the next message."""
        if not self._last:
            self._say("Nothing to share yet: !COMMAND runs a line in your shell.", "yellow")
            return
        self._shared = self._last
        first = self._last.split("\n", 1)[0]
        self._say(f"Your next message includes the output of: {first}", "dim")

    @property
    def shared_output(self) -> str:
        """The output that goes with the next message; empty for none."""
        shared = self._shared
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shared)), default=0))
        return f"I ran this myself, in the workspace:\n{fence}\n{shared}\n{fence}" if shared else ""

    def forget_shared(self) -> None:
        """A message with it was sent; one that a hook blocks keeps it for the next."""
        self._shared = ""

    async def _run(self, line: str, folder: Path, kept: list[str]) -> int:
        own = os.environ.get("SHELL", "")
        shell = own if own.startswith("/") and os.access(own, os.X_OK) else "/bin/sh"
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(shell, "-c", line),
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                start_new_session=True,
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)

        def end(number: signal.Signals) -> None:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)

        def stop() -> None:
            """Interrupt the command, and kill it if it does not end."""
            end(signal.SIGINT)
            asyncio.get_running_loop().call_later(_GRACE_S, end, signal.SIGKILL)

        display = self._display
        keys = TurnKeys(stop, changed=display.show_typed, suspend=display.hide)
        try:
            with catch_signals(lambda _: stop(), signal.SIGINT):
                async with (
                    self._terminal.during_turn(keys),
                    self._status(line),
                    _output(reading, process) as output,
                ):
                    async for lines in _lines(output):
                        kept += lines
                        del kept[: -_KEPT_CHARS // 2]
                        # Not folded: a terminal copies a line that it wraps itself as one.
                        display.lines(list(map(safe_text, lines)))
                    # It may have closed or redirected its output and still run.
                    return await process.wait()
        finally:
            if process.returncode is None:
                end(signal.SIGKILL)
                await process.wait()

    @contextlib.asynccontextmanager
    async def _status(self, line: str) -> AsyncIterator[None]:
        """Show a status line that names the command while it runs."""

        async def tick() -> None:
            while True:
                await asyncio.sleep(_TICK_S)
                self._display.tick()

        self._display.begin(activity=truncate(f"$ {' '.join(escape(line).split())}", _NAME_COLUMNS))
        ticking = asyncio.create_task(tick())
        try:
            yield
        finally:
            ticking.cancel()
            self._display.finish()

    def _say(self, text: str, style: str) -> None:
        self._display.line(safe_text(text, style))


@contextlib.asynccontextmanager
async def _output(reading: int, process: asyncio.subprocess.Process) -> AsyncIterator[asyncio.StreamReader]:
    """The output, until it is closed or the process has ended."""
    reader = asyncio.StreamReader(limit=_CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
    )

    async def close_at_end() -> None:
        await process.wait()
        await asyncio.sleep(_DRAIN_S)
        # Not only the reader: a background process may still write.
        transport.close()

    ends = asyncio.create_task(close_at_end())
    try:
        yield reader
    finally:
        ends.cancel()
        transport.close()
        await asyncio.gather(ends, return_exceptions=True)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[list[str]]:
    """The lines as a terminal would show them in the end: no colours, nothing that was overwritten."""
    decoder, partial = codecs.getincrementaldecoder("utf-8")("replace"), ""
    while data := await reader.read(_CHUNK):
        *lines, partial = (partial + decoder.decode(data)).split("\n")
        if len(partial) > _LONGEST_LINE:
            lines.append(partial)
            partial = ""
        if lines:
            yield list(map(_plain, lines))
        await asyncio.sleep(0)  # Keys are handled, however much is written.
    if partial:
        yield [_plain(partial)]


def _plain(line: str) -> str:
    return _ANSI.sub("", line).rstrip("\r").rpartition("\r")[2].replace("\t", "    ")
