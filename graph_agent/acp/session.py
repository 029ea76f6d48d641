"""One thread that a client works with: its turns, one after another, and its questions as permission requests.

A permission request is only a view of a stored question. If it is lost with the process, with the editor or by
being dismissed, the question stays and is asked again when the thread is next opened.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graph_agent.acp.choices import OWN_COMMANDS, available_commands, config_options, mode_state, parse_command
from graph_agent.acp.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    Connection,
    RpcError,
    to_rpc_error,
)
from graph_agent.acp.prompts import Prompt
from graph_agent.acp.questions import Questions
from graph_agent.acp.updates import SessionUpdates
from graph_agent.app.chat_input import UserCommands
from graph_agent.app.file_changes import thread_changes
from graph_agent.app.reader import read_database
from graph_agent.config.paths import own_command
from graph_agent.errors import AgentError, UsageError
from graph_agent.inspect import CallView
from graph_agent.ports.read_store import TranscriptEntry
from graph_agent.ports.storage import ANSWER_POLL_S
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult

__all__ = ["ClientSession"]

_WAITING = ("awaiting_approval", "interrupted")
_FAILED = ("model_error", "failed", "resumable", "held", "stopped")
"""After a turn that ended like this, queued messages wait."""
_END_S = 10.0
_log = logging.getLogger(__name__)

Work = Coroutine[Any, Any, TurnResult | None]
Waiter = asyncio.Future[TurnResult]


class ClientSession:
    """An open thread. `begin` is called once the client knows that it is open."""

    def __init__(
        self,
        session_id: str,
        session: Session,
        client: Connection,
        updates: SessionUpdates,
        database: Path,
        *,
        trusts_once: bool,
    ) -> None:
        self.id = session_id
        self.session = session
        self.stops = 0
        """How often the client has cancelled."""
        self._client = client
        self._updates = updates
        self._database = database
        self._trusts_once = trusts_once
        self._questions = Questions(session_id, session, client, updates)
        self._turn: asyncio.Task[None] | None = None
        self._waiters: list[Waiter] = []
        """Prompts that end with the turn that runs now."""
        self._queued: dict[int, Waiter] = {}
        """Prompts that wait, by the number of their message in the thread's queue."""
        self._shown: set[int] = set()
        """Messages of the queue that the client has, once they are being sent."""
        self._queue_lock = asyncio.Lock()
        self._left: TurnResult | None = None
        """The last result, if its questions were left open."""
        self._is_stopping = self._is_ending = False
        self._is_fresh = False
        """Whether the thread is new and nothing was sent yet, so that there is nothing to stop."""
        self._background: set[asyncio.Task[Any]] = set()
        self._commands = UserCommands()
        self._models: tuple[str, ...] = ()
        self._mode, self._title = session.mode, ""

    @property
    def state(self) -> Mapping[str, Any]:
        """What the response to opening it holds."""
        return {"modes": mode_state(self.session.mode), "configOptions": self._config_options()}

    def begin(self, *, is_new: bool) -> None:
        """Send what can be chosen, and continue what an earlier process left open."""
        self._is_fresh = is_new
        self._spawn(self._send_choices())
        self._begin_turn(self.session.start())
        if not is_new:
            self._spawn(self._send_usage())

    def replay(self, entries: Iterable[TranscriptEntry], views: Iterable[CallView]) -> None:
        """Send the conversation so far."""
        self._updates.replay(entries, views)

    async def prompt(self, prompt: Prompt, stops: int) -> TurnResult:
        """Send a message, or queue it while the thread is busy; returns how the turn of the message ended.

        Args:
            stops: what `stops` was when the prompt arrived.
        """
        if (command := parse_command(prompt.text)) is not None:
            name, arguments = command
            if name in OWN_COMMANDS:
                return await self._run_command(name, arguments)
            if (message := self._commands.message(name, arguments)) is not None:
                prompt = replace(prompt, text=message)
        if self._is_fresh and self._turn is not None:
            await asyncio.wait({self._turn})
        if stops != self.stops:
            return await self._stopped()
        self._is_fresh = False
        answered = await self._questions.answer_in_words(prompt.whole, self._left.questions if self._left else ())
        if answered:
            return await self._join()
        if self.is_busy or self._left is not None or await self.session.queued():
            return await self._queue_prompt(prompt)
        waiter = self._new_waiter()
        self._begin_turn(self.session.send(prompt.text, prompt.attachment), waiter)
        return await waiter

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs, or waits for answers that the client has been asked for."""
        return self._turn is not None and not self._turn.done()

    async def stop(self) -> None:
        """Stop the turn: what runs is interrupted, and everything pending is cancelled."""
        self.stops += 1
        async with self._queue_lock:
            for number, waiter in tuple(self._queued.items()):
                if await self.session.remove_queued(number) and not waiter.done():
                    waiter.set_result(await self._stopped())
                self._queued.pop(number, None)
        if not self.is_busy or self._is_fresh:
            if self._left is not None:
                self._left = None
                await self.session.stop()
            return
        self._is_stopping = True
        if not self._questions.drop():
            await self.session.stop()

    def begin_stop(self) -> None:
        """Stop the turn, without waiting for its end."""
        self._spawn(self.stop())

    async def set_mode(self, mode: str) -> None:
        """Set the permission mode."""
        try:
            await self.session.change_mode(mode)
        except UsageError as refusal:
            raise RpcError(INVALID_PARAMS, str(refusal)) from refusal
        self._send_mode()

    async def set_option(self, key: str, value: str) -> list[Mapping[str, Any]]:
        """Set one of the session's options; returns all of them."""
        if key == "mode":
            await self.set_mode(value)
        elif key == "model":
            try:
                await self.session.switch_model(value)
            except UsageError as refusal:
                raise RpcError(INVALID_PARAMS, str(refusal)) from refusal
        else:
            raise RpcError(INVALID_PARAMS, f"There is no option {key!r}. The options are mode and model.")
        return self._config_options()

    async def close(self) -> None:
        """Interrupt what runs, so that the next process continues it, and release the thread."""
        self._is_ending = True
        for task in self._background:
            task.cancel()
        self._questions.drop()
        await self.session.shut_down()
        if self._turn is not None:
            _, running = await asyncio.wait({self._turn}, timeout=_END_S)
            for task in running:
                task.cancel()
            await asyncio.gather(self._turn, return_exceptions=True)
        for waiter in (*self._waiters, *self._queued.values()):
            if not waiter.done():
                waiter.set_exception(
                    RpcError(INVALID_REQUEST, "The session was closed; load it to continue the turn.")
                )
        await self.session.close()

    def _begin_turn(self, work: Work, waiter: Waiter | None = None) -> None:
        self._left = None
        self._turn = asyncio.get_running_loop().create_task(self._run_turns(work, waiter))
        self._turn.add_done_callback(self._report_bug)

    def _report_bug(self, turn: asyncio.Task[None]) -> None:
        """End the prompts of a turn that failed unexpectedly; the connection logs the error."""
        if not turn.cancelled() and (bug := turn.exception()) is not None:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(bug)
            if not waiters:
                _log.error("a turn failed", exc_info=bug)

    def _new_waiter(self) -> Waiter:
        return asyncio.get_running_loop().create_future()

    async def _join(self) -> TurnResult:
        """Wait for the turn that runs; one whose last question has just been answered continues."""
        waiter = self._new_waiter()
        if self.is_busy:
            self._waiters.append(waiter)
        else:
            self._begin_turn(self.session.proceed(), waiter)
        return await waiter

    async def _queue_prompt(self, prompt: Prompt) -> TurnResult:
        """Store the message durably; the turns begin with it in its order."""
        waiter = self._new_waiter()
        async with self._queue_lock:
            self._queued[await self.session.queue(prompt.whole)] = waiter
        if not self.is_busy:
            # What was left open is asked again first.
            work: Work = self.session.proceed() if self._left is not None else self._send_next()
            self._begin_turn(work)
        return await waiter

    async def _run_turns(self, work: Work, waiter: Waiter | None) -> None:
        """Run a turn to its end, then those of the messages that wait."""
        if waiter is not None:
            self._waiters.append(waiter)
        result = await self._run_turn(work)
        while result is not None and not result.questions and result.status not in _FAILED:
            if self._is_ending or not await self.session.queued():
                break
            result = await self._run_turn(self._send_next())
        for number, left in tuple(self._queued.items()):
            # It stays in the queue: with open questions, or after an error, it is not its turn yet.
            del self._queued[number]
            if not left.done():
                left.set_result(result or await self._stopped())
        if self._left is not None and not self._is_ending:
            self._spawn(self._watch_left())

    async def _send_next(self) -> TurnResult | None:
        async with self._queue_lock:
            for number, text in (await self.session.queued())[:1]:
                if (waiter := self._queued.pop(number, None)) is not None:
                    self._waiters.append(waiter)
                elif number not in self._shown:
                    # From an earlier process of this client, or from elsewhere: the client has not shown it.
                    self._updates.say_as_user(text)
                self._shown.add(number)
        return await self.session.send_queued()

    async def _run_turn(self, work: Work) -> TurnResult | None:
        """One turn with all its questions; None if it failed: then its prompts end with the error."""
        try:
            result = await self._resolve(await work)
        except AgentError as failure:
            self._end_prompts(to_rpc_error(failure))
            if not self._waiters:
                self._updates.say(str(failure))
            return None
        except asyncio.CancelledError:
            self._end_prompts(RpcError(INVALID_REQUEST, "The turn was interrupted. Load the session again."))
            return None
        finally:
            self._is_stopping = False
        if self._is_ending:
            return None
        if result is not None:
            await self._send_result(result)
            self._end_prompts(result)
        return result

    def _end_prompts(self, outcome: TurnResult | RpcError) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if isinstance(outcome, RpcError):
                waiter.set_exception(outcome)
            else:
                waiter.set_result(outcome)

    async def _resolve(self, result: TurnResult | None) -> TurnResult | None:
        """Ask until nothing is open. Questions that the client leaves stay open, and are part of the result."""
        while result is not None and result.status in _WAITING:
            is_answered = not self._is_stopping and await self._questions.ask(result.questions)
            if self._is_ending:
                return result
            if self._is_stopping:
                return await self.session.stop()
            if not is_answered:
                self._left = result = await self.session.waiting()
                if result.questions:
                    return result
                self._left = None
            asked, result = result.questions, await self.session.proceed()
            await self._questions.show_sub_agents(asked, self._database)
        return result

    async def _watch_left(self) -> None:
        """Continue once another process has answered what was left open here."""
        while True:
            await asyncio.sleep(ANSWER_POLL_S)
            if self.is_busy or self._left is None:
                return
            if await self.session.answers_from_others():
                self._begin_turn(self.session.proceed())

    async def _stopped(self) -> TurnResult:
        return replace(await self.session.waiting(), status="stopped", questions=())

    async def _run_command(self, name: str, arguments: str) -> TurnResult:
        """Run one of the agent's own commands; what it has to say is a message."""
        if name in ("compact", "retry"):
            if self._turn is not None:
                await asyncio.wait({self._turn})
            if self.is_busy or self._left is not None:
                raise RpcError(INVALID_REQUEST, f"/{name} has to wait until the open questions have answers.")
            waiter = self._new_waiter()
            self._begin_turn(self.session.compact() if name == "compact" else self.session.continue_turn(), waiter)
            return await waiter
        if name == "diff":
            self._updates.say(await asyncio.to_thread(self._changes))
        elif not arguments:
            self._updates.say(f"mode: {self.session.mode}, model: {self.session.model_label}")
        else:
            await self.set_option(name, arguments)
            self._updates.say(f"{name}: {arguments}")
            self._send_options()
        return replace(await self.session.waiting(), status="done", questions=())

    def _changes(self) -> str:
        changes = thread_changes(self._database, self.session.thread_id, None)
        diffs = [f"```diff\n{file.diff.rstrip()}\n```" for file in changes.files if file.diff]
        return "\n\n".join(diffs) or "This thread has changed no files."

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(_logged(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _send_choices(self) -> None:
        workspace, once = self.session.workspace, self._trusts_once
        self._commands, listed = await asyncio.to_thread(available_commands, workspace, once=once)
        self._send({"sessionUpdate": "available_commands_update", "availableCommands": listed})
        self._models = await self.session.model_names()
        if len(self._models) > 1 or self.session.model_name is None:
            self._send_options()

    async def _send_result(self, result: TurnResult) -> None:
        """What a client shows beside the conversation, and questions that were left open."""
        await _logged(self._send_usage(result))
        if self.session.mode != self._mode:
            self._send_mode()
            self._send_options()
        if (text := _describe_ending(result)) and not self._is_ending:
            self._updates.say(text)
        title = await asyncio.to_thread(self._read_title)
        if title and title != self._title:
            self._title = title
            self._send({"sessionUpdate": "session_info_update", "title": title})

    def _read_title(self) -> str:
        with read_database(self._database) as reader:
            return reader.thread(self.session.thread_id).title

    async def _send_usage(self, result: TurnResult | None = None) -> None:
        use = await self.session.context_use()
        update: dict[str, Any] = {"sessionUpdate": "usage_update", "used": use.total, "size": use.window.tokens}
        spent = result.thread_usage if result is not None else {}
        if spent.get("cost") is not None and spent.get("currency"):
            update["cost"] = {"amount": spent["cost"], "currency": spent["currency"]}
        self._send(update)

    def _send_mode(self) -> None:
        self._mode = self.session.mode
        self._send({"sessionUpdate": "current_mode_update", "currentModeId": self._mode})

    def _send_options(self) -> None:
        self._send({"sessionUpdate": "config_option_update", "configOptions": self._config_options()})

    def _config_options(self) -> list[Mapping[str, Any]]:
        session = self.session
        return config_options(session.mode, session.model_name or "", self._models)

    def _send(self, update: Mapping[str, Any]) -> None:
        self._client.notify("session/update", {"sessionId": self.id, "update": update})


async def _logged(work: Coroutine[Any, Any, Any]) -> None:
    """Do what is only for show: if it fails, the session goes on."""
    try:
        await work
    except AgentError as failure:
        _log.warning("%s", failure)


def _describe_ending(result: TurnResult) -> str:
    """What the client's user should know of how a turn ended; empty for what the protocol or the reply says."""
    if result.status == "resumable":
        return "The last turn was interrupted before the model answered. /retry asks again."
    if result.status == "limit":
        return f"{result.error or 'The turn reached a limit'}. Send new instructions, or continue with /retry."
    if not result.questions:
        return ""
    shown = "; ".join(str(item.call.get("summary") or item.call["tool_name"]) for item in result.questions)
    command = "recover" if result.status == "interrupted" else "approvals list"
    return f"Left open: {shown}. Send any message to be asked again, or use `{own_command()} {command}`."
