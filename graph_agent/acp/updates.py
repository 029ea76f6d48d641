"""What happens in a session as `session/update` notifications, live and from the stored conversation."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graph_agent.acp.tool_calls import (
    ToolCall,
    call_update,
    diff_content,
    plan_entries,
    text_content,
    tool_call,
    tool_call_id,
)
from graph_agent.events import (
    Compacted,
    Event,
    MessageAdded,
    ModelMessage,
    ShellEnded,
    StepStarted,
    TextDelta,
    ToolCallCreated,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    WarningIssued,
)
from graph_agent.inspect import CallView
from graph_agent.ports.read_store import TranscriptEntry
from graph_agent.ports.stored_text import plain_text
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["SessionUpdates"]

Send = Callable[[Mapping[str, Any]], None]
"""Sends one update of the session."""

_LIVE_CHARS = 8_000
"""Of the output of a running command, its end; each update repeats it."""
_ATTACHED = re.compile(r'\n\n<(file|folder) path="([^"\n]*)"[^>\n]*>\n.*?\n</\1>', re.DOTALL)


class SessionUpdates:
    """Translates the events of one session. Knows which calls the client has."""

    def __init__(self, send: Send, workspace: Path) -> None:
        self._send = send
        self._workspace = workspace
        self._records: dict[str, Mapping[str, Any]] = {}
        self._announced: set[str] = set()
        self._streamed = ""
        """Text of the present reply that was sent already."""
        self._output: dict[str, str] = {}
        """The end of what each running command has written."""

    def take(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Send what the client should know of an event."""
        match event:
            case StepStarted() | TextDelta() | ModelMessage():
                self._take_reply(event)
            case MessageAdded(text=text):
                self.say_as_user(text)  # Queued elsewhere: what this client sends waits for the end of the turn.
            case ToolCallCreated(call=record):
                self._records[record["call_id"]] = record
                self.announce(record)
            case ToolCallStarted(call_id=call_id):
                self.announce(self._record(call_id, event.tool_name))
                self._update({"toolCallId": call_id, "status": "in_progress"})
            case ToolCallProgress():
                self._show_progress(event)
            case ToolCallFinished():
                self._finish(event)
            case _ if text := _describe_notice(event):
                self._say("agent_thought_chunk", f"{text}\n\n")

    def _take_reply(self, event: StepStarted | TextDelta | ModelMessage) -> None:
        match event:
            case TextDelta(text=text, kind=kind):
                self._streamed += text if kind == "text" else ""
                self._say("agent_thought_chunk" if kind == "reasoning" else "agent_message_chunk", text)
                return
            case ModelMessage(text=text) if text.startswith(self._streamed):
                # All of a reply that was not streamed, or the end of one of which pieces were dropped.
                self._say("agent_message_chunk", text[len(self._streamed) :])
        self._streamed = ""

    def say(self, text: str) -> None:
        """Send text as the agent's own, apart from any reply."""
        self._say("agent_message_chunk", f"{text}\n\n")

    def say_as_user(self, text: str) -> None:
        """Send a message of the user; what files held is for the model, and here their names are enough."""
        self._say("user_message_chunk", _ATTACHED.sub("", text))

    def announce(self, record: Mapping[str, Any], thread_id: str = "") -> ToolCall:
        """Send the call unless the client knows it; returns it as a whole."""
        call = tool_call(record, self._workspace, thread_id)
        if call["toolCallId"] not in self._announced:
            self._announced.add(call["toolCallId"])
            self._send({"sessionUpdate": "tool_call", **call})
        return call

    def ask(self, item: OpenQuestion, content: Sequence[Mapping[str, Any]]) -> ToolCall:
        """Announce the call of a question; returns it with what a person sees before answering."""
        self._records.setdefault(item.question.call_id, item.call)
        return {**self.announce(item.call, item.thread_id), "status": "pending", "content": content}

    def show(self, record: Mapping[str, Any], thread_id: str = "", note: str = "") -> None:
        """Send the state of a call, with a note ahead of its content."""
        update = call_update(record, thread_id)
        if note:
            update["content"] = [text_content(note), *update.get("content", ())]
        self._update(update)

    def decided(self, item: OpenQuestion, note: str, *, runs: bool) -> None:
        """Say how a question was answered, before anything else is known of its call."""
        content = [text_content(note), *diff_content(item.call)]
        identifier = tool_call_id(item.question.call_id, item.thread_id)
        self._update({"toolCallId": identifier, "status": "in_progress" if runs else "failed", "content": content})

    def replay(self, entries: Iterable[TranscriptEntry], views: Iterable[CallView]) -> None:
        """Send the stored conversation, each call as it is by now. Other calls are sent once something happens."""
        records = self._records = {view.record["call_id"]: view.record for view in views}
        for entry in entries:
            text = plain_text(entry.body.get("content"))
            if entry.role == "user":
                self.say_as_user(text)
            elif entry.role == "assistant":
                if text:
                    self._say("agent_message_chunk", text)
                for call in entry.body.get("tool_calls") or ():
                    if (record := records.get(str(call.get("id")))) is not None:
                        self._replay_call(record)

    def _replay_call(self, record: Mapping[str, Any]) -> None:
        self.announce(record)
        self._send_plan(record)

    def _say(self, kind: str, text: str) -> None:
        if text:
            self._send({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def _update(self, update: ToolCall) -> None:
        self._send({"sessionUpdate": "tool_call_update", **update})

    def _show_progress(self, event: ToolCallProgress) -> None:
        if event.kind == "shell_output":
            text = (self._output.get(event.call_id, "") + event.text)[-_LIVE_CHARS:]
            self._output[event.call_id] = text
            text = f"```\n{text.replace('```', '` ` `')}\n```"
        else:
            text = event.text
        content = [*diff_content(self._records.get(event.call_id, {})), text_content(text)]
        self._update({"toolCallId": event.call_id, "status": "in_progress", "content": content})

    def _finish(self, event: ToolCallFinished) -> None:
        self._output.pop(event.call_id, None)
        known = self._record(event.call_id, event.tool_name)
        record = {
            **known,
            "status": event.status,
            "result": event.output or None,
            "error_msg": event.error,
            "reason": event.reason,
            "outcome": event.outcome,
            "decided_by": event.decided_by,
            "metadata": event.metadata,
        }
        self._records[event.call_id] = record
        self.announce(known)
        self._update(call_update(record))
        self._send_plan(record)

    def _record(self, call_id: str, tool_name: str) -> Mapping[str, Any]:
        """What is known of a call; little where an earlier process has created it and nothing was replayed."""
        unknown = {"call_id": call_id, "tool_name": tool_name, "arguments": {}, "status": "pending"}
        return self._records.get(call_id) or unknown

    def _send_plan(self, record: Mapping[str, Any]) -> None:
        if (plan := plan_entries(record)) is not None and record["status"] == "success":
            self._send({"sessionUpdate": "plan", "entries": plan})


def _describe_notice(event: Event) -> str:
    """What to say about an event that is not part of any reply; empty for the others."""
    match event:
        case WarningIssued(text=text):
            return text
        case Compacted(tokens_before=before, tokens_after=after):
            return f"The context was compacted from about {before:,} to {after:,} tokens."
        case ShellEnded(shell_id=shell, command=command, state=state):
            return f"Background shell {shell} ({command}): {state}."
        case _:
            return ""
