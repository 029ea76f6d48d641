"""The page of a question: tool, risk, every byte of the arguments, the change, where and why, as lines."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from graph_agent.calls import PLAN_TOOL, question_and_options
from graph_agent.cli.render.console import added_text, block, diff_lines, fold, safe_text
from graph_agent.ports import SandboxInfo
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["approval_page", "mixed_alphabets", "question_page", "recovery_page"]

_WORD = re.compile(r"\w+")
_ALPHABETS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")
_RISKS = {
    "low": ("LOW risk", "green"),
    "medium": ("MEDIUM risk", "yellow"),
    "high": ("HIGH risk", "bold white on red"),
}
_INTERRUPTED = {
    "never_started": "It was approved but never started: nothing happened, and a retry is safe.",
    "outcome_unknown": "It started but did not finish; it may have taken effect partly or fully.",
}
_WARNING = "  ! This may be impossible to undo. Read all of it before you answer."


def approval_page(
    item: OpenQuestion, workspace: Path, sandbox: SandboxInfo, width: int, place: str, *, is_edited: bool = False
) -> list[Text]:
    """The page of an approval; `place` is which of how many, `is_edited` whether it was edited at this prompt."""
    call = item.call
    lines = _title("Approval", item, place, width)
    if call.get("risk") == "high":
        warning = wrap(_WARNING, max(width - 1, 20), subsequent_indent="    ")
        lines += [Text(f"{line} ", "bold white on red") for line in warning]
    lines += _field("why", item.question.reason or call.get("reason") or "the policy asks before this tool", width)
    lines += _field("workspace", str(workspace), width)
    preview = call.get("preview")
    lines += _arguments(call["arguments"], preview, width)
    for word, letters in mixed_alphabets(call["arguments"]):
        lines += fold(safe_text(f"{word} mixes alphabets: {letters}", "bold yellow"), width, "  ! ", "    ")
    if is_edited:
        lines.append(Text("  These are your edited arguments, not the model's.", "bold"))
    match preview:
        case {"kind": "diff", "text": str(text)}:
            lines += diff_lines(text, width)
        case {"text": str(text)} if text:
            lines += [Text("  this would:"), *block(text, width)]
        case _:
            pass
    if call["tool_name"] in sandbox.tools:
        name = f"{sandbox.name}: " if sandbox.is_active else "" if sandbox.name == "off" else "none: "
        way_out = "; o runs this command outside it" if sandbox.is_active else ""
        # Words of the program may be wrapped; what would run is only folded.
        text = f"  sandbox: {name}{sandbox.description}{way_out}"
        style = "" if sandbox.is_active else "yellow"
        lines += [safe_text(line, style) for line in wrap(text, max(width, 20), subsequent_indent=" " * 11)]
    return lines


def question_page(item: OpenQuestion, width: int, place: str) -> list[Text]:
    """The page of a question of the model: what it wants to know, and its options."""
    text, options = question_and_options(item.call)
    is_plan = item.call["tool_name"] == PLAN_TOOL
    lines = _title("Plan" if is_plan else "Question", item, place, width)
    lines += block(text, width, style="" if is_plan else "bold")
    for position, option in enumerate(options, 1):
        lines += fold(safe_text(option), width, f"  {position}. ", "  │  ")
    return lines


def recovery_page(item: OpenQuestion, width: int, place: str) -> list[Text]:
    """The page of an interrupted call: what is known of it, and what a check found."""
    call = item.call
    reason = item.question.reason or call.get("reason") or "outcome_unknown"
    lines = _title("Interrupted", item, place, width)
    lines += fold(Text(_INTERRUPTED.get(reason, reason), "bold"), width, "  ")
    lines += _field("attempt", str(item.question.attempt), width)
    for name, key in (("asked", "asked_at"), ("approved", "approved_at"), ("started", "started_at")):
        if when := call.get(key):
            lines += _field(name, str(when), width)
    lines += _arguments(call["arguments"], None, width)
    if item.partial_output:
        lines += [Text("  output so far:"), *block(item.partial_output, width, style="dim")]
    if item.processes:
        still = f"pid {', '.join(map(str, item.processes))}; a retry waits until they have exited"
        lines += _field("still running", still, width)
    if item.finding:
        lines += _field("finding", f"{item.finding_verdict.replace('_', ' ')}: {item.finding}".lstrip(": "), width)
    return lines


def _title(kind: str, item: OpenQuestion, place: str, width: int) -> list[Text]:
    """Which sub-agent asks, if one does; what is asked about, its risk and id. A question has no risk."""
    call = item.call
    head = f"{kind} {place}" if place else kind
    call_id = safe_text(str(call["call_id"]), "dim")
    who = fold(safe_text(f"sub-agent {item.sub_agent!r} asks", "bold cyan"), width) if item.sub_agent else []
    if kind == "Question":
        return [*who, Text.assemble((f"{head} ", "bold"), call_id)]
    tool = safe_text(str(call["tool_name"]), "bold")
    risk = _RISKS.get(call.get("risk", "medium"), _RISKS["medium"])
    return [*who, Text.assemble((f"{head}: ", "bold"), tool, "  ", risk, "  ", call_id)]


def _field(name: str, value: str, width: int) -> list[Text]:
    label = f"  {safe_text(name).plain}: "
    return fold(safe_text(value), width, label, f"{' ' * (cell_len(label) - 2)}│ ")


def _arguments(arguments: Mapping[str, Any], preview: Mapping[str, Any] | None, width: int) -> Iterator[Text]:
    shown = added_text(preview["text"]) if preview and preview.get("kind") == "diff" else None
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        ending = "" if text.endswith("\n") else ", without a newline at the end"
        if value is text and shown is not None and text.removesuffix("\n") == shown:
            size = len(text.encode(errors="surrogatepass"))
            yield from _field(name, f"{size} bytes: the added lines below{ending}", width)
        elif "\n" not in text:
            yield from _field(name, text, width)
        else:
            count = text.removesuffix("\n").count("\n") + 1
            yield from _field(name, f"{count} lines{ending}", width)
            yield from block(text, width)


def mixed_alphabets(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each word that mixes Latin letters with others that may look like them, and the names of those others."""
    seen: set[str] = set()
    for text in filter(lambda value: isinstance(value, str) and not value.isascii(), arguments.values()):
        for word in _WORD.findall(text):
            foreign = {char for char in word if _alphabet(char) not in ("", "LATIN")}
            if word not in seen and foreign and any(_alphabet(char) == "LATIN" for char in word):
                seen.add(word)
                yield word, ", ".join(f"U+{ord(char):04X} {unicodedata.name(char)}" for char in sorted(foreign))


def _alphabet(char: str) -> str:
    name = unicodedata.name(char, "")
    return next((alphabet for alphabet in _ALPHABETS if name.startswith(alphabet)), "")
