"""The content of an exported page: the turns of a thread, their messages, and the calls of each message.

Known secrets are redacted here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from graph_agent.inspect.calls import CallView, call_end, decision_words
from graph_agent.inspect.reader import Reader
from graph_agent.inspect.threads import ThreadSummary
from graph_agent.ports.read_store import TranscriptEntry
from graph_agent.ports.stored_text import plain_text
from graph_agent.ports.usage import format_usage, usage_report

__all__ = [
    "Transcript",
    "TranscriptCall",
    "TranscriptMessage",
    "call_facts",
    "diff_line_kind",
    "format_tokens",
    "format_utc",
    "gather_messages",
    "read_transcript",
    "sum_tokens",
    "thread_facts",
]

_SUBJECT_ARGUMENTS = ("command", "file_path", "path", "pattern", "url", "question")
"""Arguments that name the subject of a call; the first one that it has is shown."""


@dataclass(frozen=True, slots=True)
class TranscriptCall:
    """One call."""

    record: Mapping[str, Any]
    result: str
    """The result that the model received; before that, what is known."""

    @property
    def diff(self) -> str:
        """Its change as a unified diff; of a call that has not run, the proposed change."""
        preview = self.record.get("preview") or {}
        made = (self.record.get("metadata") or {}).get("diff")
        if isinstance(made, dict) and made.get("unified"):
            return str(made["unified"])
        is_proposal = preview.get("kind") == "diff" and self.record.get("status") != "success"
        return str(preview.get("text") or "") if is_proposal else ""

    @property
    def about(self) -> str:
        """Its subject, on one line."""
        arguments = self.record.get("arguments") or {}
        named = (arguments[name] for name in _SUBJECT_ARGUMENTS if arguments.get(name))
        return " ".join(str(next(named, "")).split())

    @property
    def word(self) -> str:
        """Its outcome; its status if it has none."""
        return call_end(self.record).word

    @property
    def seconds(self) -> float | None:
        """Run time; None if unknown."""
        begin, end = (_time(self.record.get(name)) for name in ("started_at", "ended_at"))
        return None if begin is None or end is None else max((end - begin).total_seconds(), 0.0)


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message, with the calls it requested."""

    role: str
    at: str
    text: str
    tokens: Mapping[str, int]
    calls: tuple[TranscriptCall, ...] = ()
    message_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Transcript:
    """A thread."""

    thread: ThreadSummary
    title: str
    messages: tuple[TranscriptMessage, ...]
    tokens: Mapping[str, int]

    @property
    def turns(self) -> list[list[TranscriptMessage]]:
        """The messages of each turn; a turn begins with a user message."""
        turns: list[list[TranscriptMessage]] = []
        for message in self.messages:
            if message.role == "user" or not turns:
                turns.append([])
            turns[-1].append(message)
        return turns

    @property
    def calls(self) -> list[TranscriptCall]:
        """Every call of the conversation."""
        return [call for message in self.messages for call in message.calls]


def read_transcript(reader: Reader, text: str, here: str | None, secrets: Sequence[str] = ()) -> Transcript:
    """Read the thread of an id at its newest checkpoint.

    Raises:
        UnknownId: no id matches, or several do.
    """
    target = reader.resolve(text, here)
    thread = reader.thread(target.thread_id)
    messages = gather_messages(reader.iter_messages(target.thread_id), reader.calls(target.thread_id), secrets)
    tokens = sum_tokens(reader.iter_messages(target.thread_id))
    title = _redact(thread.title, _pattern_of(secrets)) or f"Thread {thread.thread_id}"
    return Transcript(thread, title, tuple(messages), tokens)


def _pattern_of(secrets: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(re.escape, sorted(secrets, key=len, reverse=True)))) if secrets else None


def _redact(value: Any, pattern: re.Pattern[str] | None) -> Any:
    """The JSON value with stars in place of every secret in its texts."""
    if pattern is None:
        return value
    match value:
        case str():
            return pattern.sub(lambda found: "*" * len(found[0]), value)
        case dict():
            return {_redact(name, pattern): _redact(one, pattern) for name, one in value.items()}
        case list() | tuple():
            return [_redact(one, pattern) for one in value]
        case _:
            return value


def gather_messages(
    transcript: Iterable[TranscriptEntry], calls: Iterable[CallView], secrets: Sequence[str] = ()
) -> Iterator[TranscriptMessage]:
    """The messages of both sides; a result belongs to its call, and a call without a record shows its request."""
    entries, pattern = list(transcript), _pattern_of(secrets)
    records = {view.record["call_id"]: view.record for view in calls}
    results = {str(entry.body.get("tool_call_id")): entry for entry in entries if entry.role == "tool"}
    for entry in entries:
        if entry.role in ("system", "tool"):
            continue
        requested = []
        for call in entry.body.get("tool_calls") or ():
            call_id = str(call.get("id"))
            unknown = {"call_id": call_id, "tool_name": call.get("name"), "arguments": call.get("args")}
            record = records.get(call_id, {**unknown, "status": "unknown"})
            result = str(record.get("error_msg") or record.get("result") or "")
            if call_id in results:
                result = plain_text(results[call_id].body.get("content"))
            requested.append(TranscriptCall(_redact(dict(record), pattern), _redact(result, pattern)))
        text = _redact(plain_text(entry.body.get("content")), pattern)
        yield TranscriptMessage(
            entry.role,
            entry.at,
            text,
            sum_tokens([entry]),
            tuple(requested),
            f"{entry.branch}/{entry.seq}/{entry.message_id}",
        )


def thread_facts(transcript: Transcript) -> dict[str, str]:
    """The facts at the top of a page."""
    thread = transcript.thread
    return {
        "thread": thread.thread_id,
        "status": thread.status,
        "workspace": thread.workspace,
        "model": thread.model,
        "mode": thread.mode,
        "created": format_utc(thread.created_at),
        "updated": format_utc(thread.updated_at),
        "turns": str(thread.turns),
        "calls": str(len(transcript.calls)),
        "tokens": format_usage(usage_report(thread.usage or {**transcript.tokens, "unpriced_requests": 1})),
    }


def call_facts(call: TranscriptCall) -> Iterator[str]:
    """The facts beside a call: run time, risk, who approved it."""
    record = call.record
    if call.seconds is not None:
        yield f"{call.seconds:.1f} s"
    if record.get("risk"):
        why = f": {record['risk_reason']}" if record.get("risk_reason") else ""
        yield f"{record['risk']} risk{why}"
    if int(record.get("attempt") or 1) > 1:
        yield f"attempt {record['attempt']}"
    end = call_end(record)
    if end.by:
        yield f"by {end.by}"
    elif record.get("decision"):
        yield decision_words(str(record["decision"]), str(record.get("decided_by") or ""))
    if record.get("changed_by"):
        yield f"arguments changed by {record['changed_by']}"
    if record.get("edited"):
        yield "arguments edited by the user"
    if record.get("status") in ("cancelled", "interrupted") and end.reason:
        yield end.reason


def format_tokens(tokens: Mapping[str, int]) -> str:
    """Tokens in and out."""
    return f"{tokens.get('input_tokens', 0)} tokens in, {tokens.get('output_tokens', 0)} out"


def format_utc(iso: str | None) -> str:
    """A stored time to the second, in UTC: a page is read anywhere."""
    found = _time(iso)
    return found.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if found else (iso or "")


def _time(iso: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(iso or ""))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def sum_tokens(transcript: Iterable[TranscriptEntry]) -> dict[str, int]:
    """Input and output tokens of all requests, as the provider reported them."""
    total = {"input_tokens": 0, "output_tokens": 0}
    for entry in transcript:
        usage = entry.body.get("usage")
        for name in total:
            count = usage.get(name) if isinstance(usage, dict) else None
            total[name] += count if isinstance(count, int) else 0
    return total


_LINE_KINDS = {"+": "add", "-": "del", "@": "hunk", "\\": "head"}


def diff_line_kind(line: str) -> str:
    """What a line of a unified diff is: head, hunk, add, del, or empty for context."""
    return "head" if line.startswith(("--- ", "+++ ")) else _LINE_KINDS.get(line[:1], "")
