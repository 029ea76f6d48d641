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

from graph_agent.cli.render.console import block, fold, safe_text
from graph_agent.cli.render.diff import added_text, diff_lines
from graph_agent.ports import SandboxInfo
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["approval_page", "mixed_alphabets", "question_page", "recovery_page", "sandbox_lines"]

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


def approval_page(
    item: OpenQuestion, workspace: Path, width: int, place: str, *, is_edited: bool = False
) -> list[Text]:
    """The page of an approval; `place` is which of how many, `is_edited` whether it was edited at this prompt."""
    call = item.call
    lines = [*_who(item, width), _title("Approval", place, call), *_warning(call, width)]
    lines += _field("why", item.question.reason or call.get("reason") or "the policy asks before this tool", width)
    lines += _field("workspace", str(workspace), width)
    preview = call.get("preview")
    lines += _arguments(call["arguments"], preview, width)
    for word, letters in mixed_alphabets(call["arguments"]):
        text = safe_text(f"{word} mixes alphabets: {letters}", "bold yellow")
        lines += fold(text, width, "  ! ", "    ")
    if is_edited:
        lines.append(Text("  These are your edited arguments, not the model's.", "bold"))
    return [*lines, *_change(preview, width)]


def sandbox_lines(call: Mapping[str, Any], walls: SandboxInfo, width: int) -> list[Text]:
    """What the sandbox keeps the call from; nothing for calls that run in no sandbox."""
    if call["tool_name"] not in walls.tools:
        return []
    name = f"{walls.name}: " if walls.is_active else "" if walls.name == "off" else "none: "
    way_out = "; o runs this command outside it" if walls.is_active else ""
    # Words of the program may be wrapped; what would run is only folded.
    text = wrap(f"  sandbox: {name}{walls.description}{way_out}", max(width, 20), subsequent_indent=" " * 11)
    lines = [safe_text(line) for line in text]
    if not walls.is_active:
        for line in lines:
            line.stylize("yellow")
    return lines


def _who(item: OpenQuestion, width: int) -> list[Text]:
    """Which sub-agent asks; nothing for the thread itself."""
    return fold(safe_text(f"sub-agent {item.sub_agent!r} asks", "bold cyan"), width) if item.sub_agent else []


def question_page(item: OpenQuestion, width: int, place: str) -> list[Text]:
    """The page of a question of the model: what it wants to know, and its options."""
    call = item.call
    number = f" {place}" if place else ""
    title = Text.assemble((f"Question{number} ", "bold"), safe_text(str(call["call_id"]), "dim"))
    lines = [*_who(item, width), title]
    lines += block(str(call["arguments"].get("question", "")), width, style="bold")
    for position, option in enumerate(call["arguments"].get("options") or (), 1):
        lines += fold(safe_text(str(option)), width, f"  {position}. ", "  │  ")
    return lines


def recovery_page(item: OpenQuestion, width: int, place: str) -> list[Text]:
    """The page of an interrupted call: what is known of it, and what a check found."""
    call = item.call
    reason = item.question.reason or call.get("reason") or "outcome_unknown"
    lines = [*_who(item, width), _title("Interrupted", place, call)]
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


def _title(what: str, place: str, call: Mapping[str, Any]) -> Text:
    label, style = _RISKS.get(call.get("risk", "medium"), _RISKS["medium"])
    number = f" {place}" if place else ""
    tool = safe_text(str(call["tool_name"]), "bold")
    call_id = safe_text(str(call["call_id"]), "dim")
    return Text.assemble((f"{what}{number}: ", "bold"), tool, "  ", (label, style), "  ", call_id)


def _warning(call: Mapping[str, Any], width: int) -> Iterator[Text]:
    if call.get("risk") == "high":
        text = "  ! This may be impossible to undo. Read all of it before you answer."
        for line in wrap(text, max(width - 1, 20), subsequent_indent="    "):
            yield Text(f"{line} ", "bold white on red")


def _field(name: str, value: str, width: int) -> list[Text]:
    label = f"  {safe_text(name).plain}: "
    return fold(safe_text(value), width, label, f"{' ' * (cell_len(label) - 2)}│ ")


def _arguments(arguments: Mapping[str, Any], preview: Mapping[str, Any] | None, width: int) -> Iterator[Text]:
    shown = added_text(preview["text"]) if preview and preview.get("kind") == "diff" else None
    for name, value in arguments.items():
        if not isinstance(value, str):
            yield from _field(name, json.dumps(value, ensure_ascii=False), width)
        elif shown is not None and value.removesuffix("\n") == shown:
            ending = "" if value.endswith("\n") else ", without a newline at the end"
            size = len(value.encode(errors="surrogatepass"))
            yield from _field(name, f"{size} bytes: the added lines below{ending}", width)
        elif "\n" not in value:
            yield from _field(name, value, width)
        else:
            ending = "" if value.endswith("\n") else ", without a newline at the end"
            count = value.removesuffix("\n").count("\n") + 1
            yield from _field(name, f"{count} lines{ending}", width)
            yield from block(value, width)


def _change(preview: Mapping[str, Any] | None, width: int) -> Iterator[Text]:
    match preview:
        case {"kind": "diff", "text": str(text)}:
            yield from diff_lines(text, width)
        case {"text": str(text)} if text:
            yield Text("  this would:")
            yield from block(text, width)
        case _:
            pass


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
