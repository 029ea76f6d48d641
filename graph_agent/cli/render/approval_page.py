"""What a person sees before answering: tool, risk, every byte of the arguments, the change, where, and why.

Builds lines; asks nothing and prints nothing.

Words that mix alphabets, so that a letter may pass for another. Says which; knows no page.
"""

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


def mixed_alphabets(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each word with Latin letters beside others that may look like them, and the names of those others."""
    seen: set[str] = set()
    for text in filter(lambda value: isinstance(value, str) and not value.isascii(), arguments.values()):
        for word in _WORD.findall(text):
            strange = {char for char in word if _alphabet(char) not in ("", "LATIN")}
            if word not in seen and strange and any(_alphabet(char) == "LATIN" for char in word):
                seen.add(word)
                yield word, ", ".join(f"U+{ord(char):04X} {unicodedata.name(char)}" for char in sorted(strange))


def _alphabet(char: str) -> str:
    name = unicodedata.name(char, "")
    return next((alphabet for alphabet in _ALPHABETS if name.startswith(alphabet)), "")


_LF = "\n"
_RISKS = {
    "low": ("LOW risk", "green"),
    "medium": ("MEDIUM risk", "yellow"),
    "high": ("HIGH risk", "bold white on red"),
}
_HAPPENED = {
    "never_started": "It was approved and never started: nothing can have happened, a retry is safe.",
    "outcome_unknown": "It was started and broken off: its effect may be there, in part or in whole.",
}


def approval_page(
    item: OpenQuestion, workspace: Path, width: int, place: str, *, is_edited: bool = False
) -> list[Text]:
    """The page of an approval; `place` says which of how many, `is_edited` that it was changed at this prompt."""
    call = item.call
    lines = [*_who(item, width), _title("Approval", place, call), *_warning(call, width)]
    lines += _field("why", item.question.reason or call.get("reason") or "the policy asks before this tool", width)
    lines += _field("workspace", str(workspace), width)
    preview = call.get("preview")
    lines += _arguments(call["arguments"], preview, width)
    for word, letters in mixed_alphabets(call["arguments"]):
        told = safe_text(f"{word} mixes alphabets: {letters}", "bold yellow")
        lines += fold(told, width, "  ! ", "    ")
    if is_edited:
        lines.append(Text("  these are your edited arguments, not the model's", "bold"))
    return [*lines, *_change(preview, width)]


def sandbox_lines(call: Mapping[str, Any], walls: SandboxInfo, width: int) -> list[Text]:
    """What keeps the call from doing more than it should; nothing for calls that no sandbox is about."""
    if call["tool_name"] not in walls.tools:
        return []
    name = f"{walls.name}: " if walls.is_active else "" if walls.name == "off" else "none: "
    way_out = "; o lets this one call run outside of it" if walls.is_active else ""
    # The program's own words: they may be folded between words, as nothing that would run may.
    told = wrap(f"  sandbox: {name}{walls.description}{way_out}", max(width, 20), subsequent_indent=" " * 11)
    lines = [safe_text(line) for line in told]
    if not walls.is_active:
        for line in lines:
            line.stylize("yellow")
    return lines


def _who(item: OpenQuestion, width: int) -> list[Text]:
    """Which sub-agent asks; nothing where it is the thread itself."""
    return fold(safe_text(f"sub-agent {item.sub_agent!r} asks", "bold cyan"), width) if item.sub_agent else []


def question_page(item: OpenQuestion, width: int, place: str) -> list[Text]:
    """The page of a question that the model asks: what it wants to know, and the options it sees."""
    call = item.call
    number = f" {place}" if place else ""
    title = Text.assemble((f"Question{number} ", "bold"), safe_text(str(call["call_id"]), "dim"))
    lines = [*_who(item, width), title]
    lines += block(str(call["arguments"].get("question", "")), width, style="bold")
    for position, option in enumerate(call["arguments"].get("options") or (), 1):
        lines += fold(safe_text(str(option)), width, f"  {position}. ", "  │  ")
    return lines


def recovery_page(item: OpenQuestion, width: int, place: str) -> list[Text]:
    """The page of an interrupted call: what is known of it, and what the world says."""
    call = item.call
    reason = item.question.reason or call.get("reason") or "outcome_unknown"
    lines = [*_who(item, width), _title("InputInterrupted", place, call)]
    lines += fold(Text(_HAPPENED.get(reason, reason), "bold"), width, "  ")
    lines += _field("attempt", str(item.question.attempt), width)
    for name, key in (("asked", "asked_at"), ("approved", "approved_at"), ("started", "started_at")):
        if when := call.get(key):
            lines += _field(name, str(when), width)
    lines += _arguments(call["arguments"], None, width)
    if item.partial_output:
        lines += [Text("  what it wrote until then:"), *block(item.partial_output, width, style="dim")]
    if item.processes:
        still = f"pid {', '.join(map(str, item.processes))}; a retry waits until they have ended"
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
        told = "  ! This can do harm that cannot be undone. Read all of it before you answer."
        for line in wrap(told, max(width - 1, 20), subsequent_indent="    "):
            yield Text(f"{line} ", "bold white on red")


def _field(name: str, value: str, width: int) -> list[Text]:
    label = f"  {safe_text(name).plain}: "
    return fold(safe_text(value), width, label, f"{' ' * (cell_len(label) - 2)}│ ")


def _arguments(arguments: Mapping[str, Any], preview: Mapping[str, Any] | None, width: int) -> Iterator[Text]:
    shown = added_text(preview["text"]) if preview and preview.get("kind") == "diff" else None
    for name, value in arguments.items():
        if not isinstance(value, str):
            yield from _field(name, json.dumps(value, ensure_ascii=False), width)
        elif shown is not None and value.removesuffix(_LF) == shown:
            ending = "" if value.endswith(_LF) else ", without a line feed at its end"
            size = len(value.encode(errors="surrogatepass"))
            yield from _field(name, f"{size} bytes, all of them the added lines below{ending}", width)
        elif _LF not in value:
            yield from _field(name, value, width)
        else:
            ending = "" if value.endswith(_LF) else ", without a line feed at its end"
            yield from _field(name, f"{len(value.removesuffix(_LF).split(_LF))} lines{ending}", width)
            yield from block(value, width)


def _change(preview: Mapping[str, Any] | None, width: int) -> Iterator[Text]:
    match preview:
        case {"kind": "diff", "text": str(text)}:
            yield from diff_lines(text, width)
        case {"text": str(text)} if text:
            yield Text("  what would happen:")
            yield from block(text, width)
        case _:
            pass
