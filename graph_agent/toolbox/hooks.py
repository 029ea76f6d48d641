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
from graph_agent.ports import Outcome, PreparedCall, Scope
from graph_agent.ports.toolbox import HookedCall
from tools.shell_ops.user_command import KEPT_BYTES, MAX_OUTPUT_BYTES, UserCommandResult, run_user_command

__all__ = ["CommandHooks"]

_BLOCKS = 2
"""The exit code with which a hook blocks, and addresses the model."""
_NAME_CHARS = 60

_HookEvent = Literal[
    "session_start", "user_prompt", "before_call", "approval", "before_tool", "after_tool", "turn_end"
]
_STDOUT_BYTES: Mapping[_HookEvent, int] = {
    "session_start": KEPT_BYTES,
    "user_prompt": KEPT_BYTES,
    "before_call": MAX_OUTPUT_BYTES,
}
"""Events of the hooks whose stdout is read, as context for the model or as arguments, and how much of it."""


@dataclass(frozen=True, slots=True)
class CommandHooks:
    """Implements `graph_agent.ports.toolbox.Hooks`."""

    settings: HookSettings
    workspace: Path
    warn: Callable[[str], None]
    """Shows the user what went wrong with a hook."""
    redact: Redactor

    @property
    def has_message_hooks(self) -> bool:
        """See the port."""
        return bool(self.settings.user_prompt)

    async def session_started(self, thread_id: str, source: str, mode: str) -> str:
        """See the port."""
        texts: list[str] = []
        for hook in _matching(self.settings.session_start, source):
            fields = {"thread_id": thread_id, "source": source, "mode": mode}
            result = await self._run("session_start", hook, fields)
            texts += _context_from(hook, result)
            if result.exit_code != 0:
                self.warn(f"hook session_start {_named(hook)} failed: {_failure(result, hook)}")
        return "\n".join(texts)

    async def message_submitted(self, thread_id: str, text: str, mode: str) -> str:
        """See the port: the first hook that blocks decides."""
        texts: list[str] = []
        for hook in self.settings.user_prompt:
            fields = {"thread_id": thread_id, "prompt": text, "mode": mode}
            result = await self._run("user_prompt", hook, fields)
            if result.exit_code == _BLOCKS:
                why = result.stderr or "it gave no reason"
                raise MessageBlocked(f"the message is not sent, blocked by the hook {_named(hook)}: {why}")
            texts += _context_from(hook, result)
            if result.exit_code == 0:
                continue
            why = _failure(result, hook)
            if hook.on_failure == "block":
                raise MessageBlocked(f"the message is not sent, because the hook {_named(hook)} failed: {why}")
            self.warn(f"hook user_prompt {_named(hook)} failed, the message is sent: {why}")
        return "\n".join(texts)

    async def call_requested(self, call: PreparedCall, scope: Scope, call_id: str, attempt: int) -> HookedCall:
        """See the port: each hook gets the arguments as the one before left them; the first that blocks decides."""
        arguments, changed_by = call.arguments, list[str]()
        about = {"call_id": call_id, "attempt": attempt, "tool_name": call.tool_name}
        about |= {"risk": call.risk, "risk_reason": call.risk_reason}
        for hook in _matching(self.settings.before_call, call.tool_name):
            fields = {"thread_id": scope.thread_id, "mode": scope.mode, **about, "tool_input": arguments}
            result = await self._run("before_call", hook, {**fields, **_shell_folder(scope)})
            if result.exit_code == _BLOCKS:
                why = result.stderr or "it gave no reason"
                return HookedCall(arguments, objection=f"blocked by the hook {_named(hook)}: {why}")
            given, why = _arguments_in(result.stdout) if result.exit_code == 0 else (None, _failure(result, hook))
            if why and hook.on_failure == "block":
                return HookedCall(arguments, objection=f"blocked, because the hook {_named(hook)} failed: {why}")
            if why:
                self.warn(f"hook before_call {_named(hook)} failed, the call is left as it is: {why}")
            if given is not None and given != arguments:
                arguments, changed_by = given, [*changed_by, _named(hook)]
        return HookedCall(arguments, f"the hook {', '.join(changed_by)}" if changed_by else "")

    async def approval_answered(self, call: ToolCallInfo, answer: Mapping[str, Any], scope: Scope) -> None:
        """See the port."""
        said = {name: str(answer.get(name, "")) for name in ("kind", "decided_by", "reason")}
        for hook in _matching(self.settings.approval, call["tool_name"]):
            fields = {**_call_fields(call, scope), "answer": said}
            result = await self._run("approval", hook, fields)
            if result.exit_code != 0:
                self.warn(f"hook approval {_named(hook)} failed: {_failure(result, hook)}")

    async def before(self, call: ToolCallInfo, scope: Scope) -> str:
        """See the port: the first hook that blocks decides."""
        for hook in _matching(self.settings.before_tool, call["tool_name"]):
            result = await self._run("before_tool", hook, _call_fields(call, scope))
            if result.exit_code == _BLOCKS:
                return f"blocked by the hook {_named(hook)}: {result.stderr or 'it gave no reason'}"
            if result.exit_code == 0:
                continue
            why = _failure(result, hook)
            if hook.on_failure == "block":
                return f"blocked, because the hook {_named(hook)} failed: {why}"
            self.warn(f"hook before_tool {_named(hook)} failed, the call runs anyway: {why}")
        return ""

    async def after(self, call: ToolCallInfo, outcome: Outcome, scope: Scope) -> str:
        """See the port."""
        texts: list[str] = []
        response = {"status": outcome.status, "output": outcome.output, "error": outcome.error}
        for hook in _matching(self.settings.after_tool, call["tool_name"]):
            fields = {**_call_fields(call, scope), "tool_response": response}
            result = await self._run("after_tool", hook, fields)
            if result.exit_code == _BLOCKS:
                texts.append(f"[The hook {_named(hook)} says: {result.stderr or 'it objected and gave no reason'}]")
            elif result.exit_code != 0:
                self.warn(f"hook after_tool {_named(hook)} failed, the result is kept: {_failure(result, hook)}")
        return "\n".join(texts)

    async def turn_ended(self, thread_id: str, status: str, answer: str) -> None:
        """See the port."""
        for hook in self.settings.turn_end:
            fields = {"thread_id": thread_id, "status": status, "answer": answer}
            result = await self._run("turn_end", hook, fields)
            if result.exit_code != 0:
                self.warn(f"hook turn_end {_named(hook)} failed: {_failure(result, hook)}")

    async def _run(self, event: _HookEvent, hook: Hook, fields: Mapping[str, Any]) -> UserCommandResult:
        common = {"hook_event_name": event, "workspace": str(self.workspace), "cwd": str(self.workspace)}
        text = json.dumps({**common, **fields}, ensure_ascii=False)
        try:
            result = await run_user_command(
                hook.command, text, self.workspace, hook.timeout, stdout_bytes=_STDOUT_BYTES.get(event, 0)
            )
        except OSError as error:
            result = UserCommandResult(None, f"it could not be started ({error})")
        # Arguments are what the model wrote, and run as they are shown.
        stdout = result.stdout if event == "before_call" else self.redact(result.stdout)
        return replace(result, stderr=self.redact(result.stderr), stdout=stdout)


def _arguments_in(stdout: str) -> tuple[dict[str, Any] | None, str]:
    """The arguments that a hook printed, None for nothing; and what is wrong with its output."""
    if not stdout.strip():
        return None, ""
    try:
        printed = json.loads(stdout)
    except (ValueError, RecursionError) as error:
        return None, f"its output is no JSON: {error}"
    match printed:
        case {"arguments": dict(arguments), **others} if not others:
            return arguments, ""
        case {} if printed == {}:
            return None, ""
        case _:
            return None, 'its output is not {"arguments": {...}}'


def _matching(hooks: Sequence[Hook], name: str) -> list[Hook]:
    """The hooks whose matcher names it, in any case: patterns separated by `|`, none for everything."""
    matching: list[Hook] = []
    for hook in hooks:
        patterns = [one.strip().lower() for one in hook.matcher.split("|") if one.strip()]
        if not patterns or any(fnmatchcase(name.lower(), one) for one in patterns):
            matching.append(hook)
    return matching


def _context_from(hook: Hook, result: UserCommandResult) -> list[str]:
    return [f"[The hook {_named(hook)} says: {result.stdout}]"] if result.exit_code == 0 and result.stdout else []


def _call_fields(call: ToolCallInfo, scope: Scope) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "thread_id": scope.thread_id,
        "mode": scope.mode,
        "call_id": call["call_id"],
        "attempt": call.get("attempt", 1),
        "risk": call.get("risk", "medium"),
        "risk_reason": call.get("risk_reason", ""),
        "tool_name": call["tool_name"],
        "tool_input": call["arguments"],
    }
    return {**fields, **_shell_folder(scope)}


def _shell_folder(scope: Scope) -> dict[str, str]:
    return {"cwd": scope.cwd} if scope.cwd else {}


def _named(hook: Hook) -> str:
    first, *more = hook.command.strip().split("\n")
    return repr(first[:_NAME_CHARS] + ("…" if more or len(first) > _NAME_CHARS else ""))


def _failure(result: UserCommandResult, hook: Hook) -> str:
    match result.stopped:
        case "timeout":
            why = f"it did not end within {hook.timeout:g} s"
        case "output_limit":
            why = "its output did not end"
        case _:
            why = f"exit code {result.exit_code}" if result.exit_code is not None else ""
    first = result.stderr.split("\n")[0]
    return ": ".join(part for part in (why, first) if part)
