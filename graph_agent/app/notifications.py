"""Notify a person who is away from the terminal that a thread waits for an answer, has finished or has failed.

Follows the event bus. A notification names the thread, the calls that wait and the commands that answer them. It
never holds contents: no message, argument, result or file. Delivery runs beside the turn, and never fails it.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import secrets
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from graph_agent.config.paths import own_command
from graph_agent.config.redaction import Redactor, redactor
from graph_agent.config.settings import Hook, NotifySettings, Settings
from graph_agent.events import Event, EventBus, ToolCallDecided, TurnEnded, TurnStarted, WarningIssued
from tools.programs import find_program
from tools.shell_ops.user_command import run_user_command

__all__ = ["Notifications", "subscribe_notifications", "webhook_headers"]

_log = logging.getLogger(__name__)

NotificationKind = Literal["on_waiting", "on_finished", "on_error"]
_KINDS: Mapping[str, NotificationKind] = {
    "awaiting_approval": "on_waiting",
    "interrupted": "on_waiting",
    "done": "on_finished",
    "limit": "on_finished",
    "model_error": "on_error",
    "failed": "on_error",
}
"""By status of the turn. The others are not announced: the user stopped the turn, or it runs in another process."""

_RETRY_AFTER_S = (1.0, 4.0)
_REQUEST_S = 5.0
_CLOSE_S = 6.0
"""How long the end of a session waits for what is not delivered yet."""
_SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of the standard, not a secret
_MAX_CALLS = 20


@dataclass(slots=True)
class Notifications:
    """Sends a notification through each channel that is set; one that fails is tried again twice."""

    settings: NotifySettings
    hooks: Mapping[NotificationKind, Sequence[Hook]]
    thread_id: str
    workspace: Path
    bus: EventBus
    redact: Redactor
    _waiting: "asyncio.Task[None] | None" = None
    """A notification that is sent unless somebody answers before."""
    _is_due: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the session ends: what is still to be sent is sent at once."""
    _sending: "set[asyncio.Task[None]]" = field(default_factory=set)
    _started: float = 0.0
    _problems: list[str] = field(default_factory=list)

    def __call__(self, _number: int, event: Event) -> None:
        match event:
            case TurnStarted():
                self._cancel_waiting()
                self._started = time.monotonic()
                self._report()
            case ToolCallDecided():
                self._cancel_waiting()  # Somebody is there.
            case TurnEnded(status=status) if kind := _KINDS.get(status):
                self._announce(kind, event)
            case _:
                pass

    async def close(self) -> None:
        """Send what is not sent yet, for some seconds at most; a failure is a warning."""
        self._is_due.set()
        if pending := [*self._sending]:
            _, late = await asyncio.wait(pending, timeout=_CLOSE_S)
            for task in late:
                task.cancel()
                self._problems.append(f"a notification was not delivered within {_CLOSE_S:g} s")
            await asyncio.gather(*late, return_exceptions=True)
        self._report()

    def _announce(self, kind: NotificationKind, event: TurnEnded) -> None:
        self._cancel_waiting()
        channels = self._channels(kind)
        is_short = time.monotonic() - self._started < self.settings.after
        if not channels or (kind != "on_waiting" and is_short):
            return
        message = self._message(kind, event)
        delay = self.settings.after if kind == "on_waiting" else 0.0
        task = asyncio.get_running_loop().create_task(self._deliver(channels, message, delay))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        if delay:
            self._waiting = task

    def _cancel_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    async def _deliver(self, channels: "Mapping[str, _Channel]", message: Mapping[str, Any], delay: float) -> None:
        if delay:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_due.wait(), delay)
        self._waiting = None
        await asyncio.gather(*(self._send(name, channel, message) for name, channel in channels.items()))

    async def _send(self, name: str, channel: "_Channel", message: Mapping[str, Any]) -> None:
        for wait_s in (*_RETRY_AFTER_S, None):
            problem = await channel(message)
            if not problem:
                return
            _log.warning("a notification failed: %s: %s", name, problem)
            if wait_s is not None:
                await asyncio.sleep(wait_s)
        self._problems.append(f"{name}: {problem}")

    def _report(self) -> None:
        problems, self._problems = self._problems, []
        for problem in problems:
            self.bus.publish(WarningIssued(self.redact(f"A notification was not delivered. {problem}")))

    def _channels(self, kind: NotificationKind) -> "dict[str, _Channel]":
        channels: dict[str, _Channel] = {}
        for hook in self.hooks.get(kind, ()):
            first = hook.command.strip().partition("\n")[0]
            channels[f"hook {kind} {first[:60]!r}"] = _Command(hook, self.workspace)
        if self.settings.desktop:
            channels["desktop"] = _desktop
        if self.settings.webhook is not None:
            secret = self.settings.webhook_secret
            key = secret.get_secret_value() if secret else ""
            channels["webhook"] = _Webhook(self.settings.webhook.get_secret_value(), key)
        if self.settings.ntfy is not None:
            channels["ntfy"] = _Ntfy(self.settings.ntfy.get_secret_value())
        return channels

    def _message(self, kind: NotificationKind, event: TurnEnded) -> dict[str, Any]:
        """What is sent; the fields are described in docs/notifications.md."""
        calls = [
            {
                "call_id": call["call_id"],
                "thread_id": call["thread_id"] or self.thread_id,
                "tool_name": call["tool_name"],
                "kind": call["kind"],
                "risk": call["risk"],
                "risk_reason": self.redact(call["risk_reason"]),
            }
            for call in event.questions[:_MAX_CALLS]
        ]
        return {
            "event": kind,
            "thread_id": self.thread_id,
            "workspace": self.workspace.name,
            "status": event.status,
            "summary": _summary(kind, event.status, calls, self.workspace.name),
            "calls": calls,
            "more_calls": max(0, len(event.questions) - _MAX_CALLS),
            "commands": _commands(kind, self.thread_id, calls),
        }


def _summary(kind: NotificationKind, status: str, calls: Sequence[Mapping[str, Any]], folder: str) -> str:
    if kind == "on_finished":
        return f"Reached a limit in {folder}" if status == "limit" else f"Finished in {folder}"
    if kind == "on_error":
        return f"Stopped by an error in {folder}"
    if len(calls) != 1:
        return f"{len(calls) or 'Some'} calls wait for you in {folder}"
    [call] = calls
    if call["kind"] == "recovery":
        return f"{call['tool_name']} was interrupted in {folder}: decide what to do"
    if call["tool_name"] == "ask_user":
        return f"A question waits for you in {folder}"
    why = f" ({call['risk']} risk{': ' + call['risk_reason'] if call['risk_reason'] else ''})"
    return f"{call['tool_name']} waits for approval in {folder}{why}"


def _commands(kind: NotificationKind, thread_id: str, calls: Sequence[Mapping[str, Any]]) -> list[str]:
    own = own_command()
    if kind != "on_waiting":
        return [f"{own} resume {thread_id}"]
    commands = [f"{own} approvals list"] if any(call["kind"] != "recovery" for call in calls) else []
    commands += [f"{own} recover {thread_id}"] if any(call["kind"] == "recovery" for call in calls) else []
    return [*commands, f"{own} resume {thread_id}"]


_Channel = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Delivers one message; returns what went wrong, empty if nothing did."""


@dataclass(frozen=True, slots=True)
class _Command:
    """The user's own command gets the message as JSON on its stdin, as other hooks do."""

    hook: Hook
    workspace: Path

    async def __call__(self, message: Mapping[str, Any]) -> str:
        fields = {"hook_event_name": message["event"], "cwd": str(self.workspace), **message}
        text = json.dumps(fields | {"workspace": str(self.workspace)}, ensure_ascii=False)
        try:
            result = await run_user_command(self.hook.command, text, self.workspace, self.hook.timeout)
        except OSError as error:
            return f"it could not be started ({error})"
        if result.stopped:
            return f"it did not end within {self.hook.timeout:g} s"
        first = result.stderr.partition("\n")[0]
        return f"exit code {result.exit_code}{': ' + first if first else ''}" if result.exit_code else ""


async def _desktop(message: Mapping[str, Any]) -> str:
    """A desktop notification, by `notify-send` or macOS's `osascript`."""
    if sys.platform == "darwin":
        script = 'on run {text}\ndisplay notification text with title "graph-agent"\nend run'
        command = ["osascript", "-e", script, message["summary"]]
    else:
        urgency = "normal" if message["event"] == "on_finished" else "critical"
        command = ["notify-send", "--app-name=graph-agent", f"--urgency={urgency}", "--", "graph-agent"]
        command.append(message["summary"])
    program = find_program(command[0])
    if program is None:
        return f"{command[0]} is not installed; install it, or set notify.desktop = false"
    words = [program, *command[1:]]
    try:
        done = await asyncio.to_thread(
            lambda: subprocess.run(words, capture_output=True, timeout=_REQUEST_S, check=False)
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{command[0]} failed ({type(error).__name__})"
    return "" if done.returncode == 0 else f"{command[0]} failed with exit code {done.returncode}"


@dataclass(frozen=True, slots=True)
class _Webhook:
    """A POST with JSON, signed as the Standard Webhooks specification describes (https://www.standardwebhooks.com)."""

    url: str
    secret: str
    message_id: str = field(default_factory=lambda: f"msg_{secrets.token_hex(12)}")
    """The same for each attempt, so that the receiver can drop a repetition."""

    async def __call__(self, message: Mapping[str, Any]) -> str:
        # The name of a folder may hold bytes that are not UTF-8.
        body = json.dumps({"type": message["event"], **message}, ensure_ascii=False).encode(errors="replace")
        headers = webhook_headers(self.secret, self.message_id, int(time.time()), body)
        return await _post(self.url, body, {"Content-Type": "application/json", **headers})


def webhook_headers(secret: str, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that identify and, with a secret, sign a webhook's body.

    The signature is HMAC-SHA256 of `ID.TIMESTAMP.BODY` in base64, after `v1,`. The key is what follows `whsec_` in
    the secret, decoded from base64; a secret without that prefix is the key itself.
    """
    headers = {"webhook-id": message_id, "webhook-timestamp": str(timestamp)}
    if not secret:
        return headers
    key = secret.encode()
    if secret.startswith(_SECRET_PREFIX):
        with suppress(binascii.Error):
            key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {**headers, "webhook-signature": f"v1,{digest}"}


@dataclass(frozen=True, slots=True)
class _Ntfy:
    """A message to a topic of an ntfy server (https://docs.ntfy.sh/publish/)."""

    url: str

    async def __call__(self, message: Mapping[str, Any]) -> str:
        parts = urlsplit(self.url)
        server, _, topic = self.url.rpartition("/")
        if not topic or not parts.path.strip("/"):
            return "the address names no topic; it should be like https://ntfy.sh/my-topic"
        text = "\n".join((message["summary"], *(f"$ {command}" for command in message["commands"])))
        priority = 3 if message["event"] == "on_finished" else 4
        body = {"topic": topic, "title": "graph-agent", "message": text, "priority": priority}
        return await _post(server, json.dumps(body).encode(), {"Content-Type": "application/json"})


async def _post(url: str, body: bytes, headers: Mapping[str, str]) -> str:
    """Post a body; what went wrong names the server only, because the path may be a secret."""
    import httpx  # noqa: PLC0415 - slow to load

    host = "the server"
    try:
        host = urlsplit(url).hostname or host
        # Streamed: the body of the answer is not read, whatever its size; and however slowly its head comes.
        async with (
            asyncio.timeout(_REQUEST_S),
            httpx.AsyncClient(timeout=_REQUEST_S) as client,
            client.stream("POST", url, content=body, headers=dict(headers)) as answer,
        ):
            pass
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError) as error:
        return f"{host} cannot be reached ({type(error).__name__})"
    return "" if answer.is_success else f"{host} answered {answer.status_code}"


def subscribe_notifications(settings: Settings, thread_id: str, workspace: Path, bus: EventBus) -> Notifications:
    """The notifications that the settings ask for, subscribed to the bus of a session."""
    hooks: Mapping[NotificationKind, Sequence[Hook]] = {
        "on_waiting": settings.hooks.on_waiting,
        "on_finished": settings.hooks.on_finished,
        "on_error": settings.hooks.on_error,
    }
    notifications = Notifications(settings.notify, hooks, thread_id, workspace, bus, redactor())
    bus.subscribe(notifications)
    return notifications
