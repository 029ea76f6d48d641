"""Run the user's hooks around calls and turns, with the user's rights and outside the sandbox."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from graph_agent.calls import ToolCallInfo
from graph_agent.config.redaction import Redactor
from graph_agent.config.settings import Hook, HookSettings
from graph_agent.errors import MessageBlocked
from graph_agent.ports import Outcome, Scope
from tools.shell_ops.user_command import UserCommandResult, run_user_command

__all__ = ["CommandHooks"]

_BLOCKS = 2
"""The exit code by which a hook speaks to the model."""
_SHOWN_CHARS = 60

_When = Literal["session_start", "user_prompt", "before_tool", "after_tool", "turn_end"]
_SPEAKING: tuple[_When, ...] = ("session_start", "user_prompt")
"""Hooks whose stdout is for the model."""


@dataclass(frozen=True, slots=True)
class CommandHooks:
    """Implements `graph_agent.ports.toolbox.Hooks`."""

    settings: HookSettings
    workspace: Path
    warn: Callable[[str], None]
    """Tells the user what went wrong with a hook."""
    scrub: Redactor

    @property
    def has_message_hooks(self) -> bool:
        """See the port."""
        return bool(self.settings.user_prompt)

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        """See the port."""
        said: list[str] = []
        for hook in _matching(self.settings.session_start, source):
            told = {"thread_id": thread_id, "source": source, "mode": mode}
            ended = await self._run("session_start", hook, told)
            said += _speech(hook, ended)
            if ended.exit_code != 0:
                self.warn(f"hook session_start {_named(hook)} failed: {_failure(ended, hook)}")
        return "\n".join(said)

    async def message_submitted(self, thread_id: str, text: str, mode: str) -> str:
        """See the port: the first hook that blocks has spoken."""
        said: list[str] = []
        for hook in self.settings.user_prompt:
            ended = await self._run("user_prompt", hook, {"thread_id": thread_id, "prompt": text, "mode": mode})
            if ended.exit_code == _BLOCKS:
                why = ended.stderr or "it gave no reason"
                raise MessageBlocked(f"the message is not sent, blocked by the hook {_named(hook)}: {why}")
            said += _speech(hook, ended)
            if ended.exit_code == 0:
                continue
            why = _failure(ended, hook)
            if hook.on_failure == "block":
                raise MessageBlocked(f"the message is not sent, because the hook {_named(hook)} failed: {why}")
            self.warn(f"hook user_prompt {_named(hook)} failed, the message is sent: {why}")
        return "\n".join(said)

    async def before(self, call: ToolCallInfo, scope: Scope) -> str:
        """See the port: the first hook that blocks has spoken."""
        for hook in _matching(self.settings.before_tool, call["tool_name"]):
            ended = await self._run("before_tool", hook, _told(call, scope))
            if ended.exit_code == _BLOCKS:
                return f"blocked by the hook {_named(hook)}: {ended.stderr or 'it gave no reason'}"
            if ended.exit_code == 0:
                continue
            if hook.on_failure == "block":
                return f"blocked, because the hook {_named(hook)} failed: {_failure(ended, hook)}"
            self.warn(f"hook before_tool {_named(hook)} failed, the call goes on: {_failure(ended, hook)}")
        return ""

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:
        """See the port."""
        said: list[str] = []
        response = {"status": outcome.status, "output": outcome.output, "error": outcome.error}
        for hook in _matching(self.settings.after_tool, call["tool_name"]):
            ended = await self._run("after_tool", hook, {**_told(call, scope), "tool_response": response})
            if ended.exit_code == _BLOCKS:
                said.append(f"[The hook {_named(hook)} says: {ended.stderr or 'it objects, and gave no reason'}]")
            elif ended.exit_code != 0:
                self.warn(f"hook after_tool {_named(hook)} failed, the result stands: {_failure(ended, hook)}")
        return "\n".join(said)

    async def turn_ended(self, thread_id: str, status: str, answer: str) -> None:
        """See the port."""
        for hook in self.settings.turn_end:
            ended = await self._run("turn_end", hook, {"thread_id": thread_id, "status": status, "answer": answer})
            if ended.exit_code != 0:
                self.warn(f"hook turn_end {_named(hook)} failed: {_failure(ended, hook)}")

    async def _run(self, when: _When, hook: Hook, told: Mapping[str, Any]) -> UserCommandResult:
        known = {"hook_event_name": when, "workspace": str(self.workspace), "cwd": str(self.workspace)}
        text = json.dumps({**known, **told}, ensure_ascii=False)
        try:
            ended = await run_user_command(
                hook.command, text, self.workspace, hook.timeout, capture_stdout=when in _SPEAKING
            )
        except OSError as error:
            ended = UserCommandResult(None, f"it could not be started ({error})")
        return replace(ended, stderr=self.scrub(ended.stderr), stdout=self.scrub(ended.stdout))


def _speech(hook: Hook, ended: UserCommandResult) -> list[str]:
    return [f"[The hook {_named(hook)} says: {ended.stdout}]"] if ended.exit_code == 0 and ended.stdout else []


def _matching(hooks: Sequence[Hook], name: str) -> list[Hook]:
    return [hook for hook in hooks if _matches(hook.matcher, name.lower())]


def _matches(matcher: str, tool_name: str) -> bool:
    wanted = [one.strip().lower() for one in matcher.split("|") if one.strip()]
    return not wanted or any(fnmatchcase(tool_name, one) for one in wanted)


def _told(call: ToolCallInfo, scope: Scope) -> dict[str, Any]:
    told: dict[str, Any] = {
        "thread_id": scope.thread_id,
        "mode": scope.mode,
        "call_id": call["call_id"],
        "attempt": call.get("attempt", 1),
        "risk": call.get("risk", "medium"),
        "tool_name": call["tool_name"],
        "tool_input": call["arguments"],
    }
    return {**told, "cwd": scope.cwd} if scope.cwd else told


def _named(hook: Hook) -> str:
    first, *more = hook.command.strip().split("\n")
    return repr(first[:_SHOWN_CHARS] + ("…" if more or len(first) > _SHOWN_CHARS else ""))


def _failure(ended: UserCommandResult, hook: Hook) -> str:
    match ended.stopped:
        case "timeout":
            why = f"it did not end within {hook.timeout:g} s"
        case "output_limit":
            why = "it wrote without end"
        case _:
            why = f"exit code {ended.exit_code}" if ended.exit_code is not None else ""
    first = ended.stderr.split("\n")[0]
    return ": ".join(part for part in (why, first) if part)
