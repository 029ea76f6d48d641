"""The page of a question: tool, risk and reason, what would run or change, and whatever is not obvious from that.

Every byte of the arguments is on the page: as the command, in the diff, or under its name. A long page is shown in
part; the whole is for a pager.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from graph_agent.calls import PLAN_TOOL, question_and_options
from graph_agent.cli.render.console import block, diff_lines, fold, hunk_lines, safe_text
from graph_agent.cli.views.table import format_time
from graph_agent.ports import SandboxInfo
from graph_agent.ports.stored_text import Hunk, parse_diff
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.wording import format_age, format_count, mixed_alphabets

__all__ = ["Page", "approval_page", "call_rows", "question_page", "recovery_page"]

_QUOTES = re.compile(r"[\'\"\\]")
_RISKS = {"low": ("LOW", "green"), "medium": ("MEDIUM", "yellow"), "high": ("HIGH", "bold white on red")}
_KINDS = {"write": "has side effects", "readonly": "only reads"}
"""What a call does if no reason is known."""
_STATES = {
    "never_started": ("never started", "It was approved and never started: a retry is safe."),
    "outcome_unknown": ("outcome unknown", "It started and did not finish: it may have run in part or in full."),
}
_CHANGED = ("content", "old_string", "new_string", "edits")
"""Arguments that a diff shows."""
_FOUND = {"already_applied": "d marks it as done.", "not_applied": "A retry is safe."}
"""What to do after what a check found."""
_SEPARATOR, _GAP = " · ", 2
_SHOWN, _SHOWN_LAST = 30, 9
"""Lines of a long body that are shown, with one for what is left out."""
_OUTPUT = 8
"""Lines of the output of an interrupted command that are shown."""
_CONTEXTS = (1, 2)


@dataclass(frozen=True, slots=True)
class Page:
    """What the user sees before answering a question."""

    head: Sequence[Text]
    """Tool, risk and reason: shown again above the question if the body is long."""
    body: Sequence[Text]
    whole: Callable[[], Sequence[Text]]
    """Everything in full, also what the body leaves to the diff; made when a pager shows it."""
    details: Sequence[Text] = ()
    """Which call it is, and where and why it asks."""

    def excerpt(self) -> tuple[list[Text], int]:
        """The lines to show, and how many of the body are left out."""
        hidden = len(self.body) - _SHOWN - _SHOWN_LAST
        if hidden <= 1:
            return [*self.head, *self.body], 0
        mark = Text(f"  … {format_count(hidden, 'line')} not shown", "bold yellow")
        return [*self.head, *self.body[:_SHOWN], mark, *self.body[-_SHOWN_LAST:], *self.head], hidden


def _server_reason(call: Mapping[str, Any]) -> str:
    kind, _, name = call["tool_name"].partition("__")
    return f"runs on the MCP server {name.partition('__')[0]}" if kind == "mcp" and name else ""


def approval_page(
    item: OpenQuestion,
    workspace: Path,
    sandbox: SandboxInfo,
    width: int,
    place: str,
    *,
    is_edited: bool = False,
    denied: str = "",
) -> Page:
    """The page of an approval; `place` is which of how many, `is_edited` whether it was edited at this prompt.

    `denied` is why it cannot be approved now; see `Proposal.denied`.
    """
    call = item.call
    change = _change(call, workspace)
    name = _name(call, change)
    risk, style = _RISKS.get(call.get("risk", "medium"), _RISKS["medium"])
    change_kind = "" if change is None else "creates a file" if change.note else "changes a file"
    why = call.get("risk_reason") or change_kind or _server_reason(call) or _KINDS.get(call.get("kind", ""), "")
    head = [*_asker(item, width), *_title(name, place, _SEPARATOR.join(filter(None, (risk, why))), style, width)]
    body = []
    if not _is_about_risk(item):
        body += _words(item.question.reason or call.get("reason") or "", width)
    is_command = call["tool_name"] in sandbox.tools or call["tool_name"] == "bash"
    body += _arguments(call["arguments"], change, width, is_command=is_command)
    for word, letters in mixed_alphabets(call["arguments"]):
        body += fold(safe_text(f"{word} mixes alphabets: {letters}", "bold yellow"), width, "  ! ", "    ")
    if is_edited:
        body.append(Text("  These are your edited arguments, not the model's.", "bold"))
    for line in _effects(call, workspace):
        body += fold(safe_text(line), width, "  ", "    ")
    if call["tool_name"] in sandbox.tools:
        body += _sandbox_lines(sandbox, width, is_high=call.get("risk") == "high")
    if change is not None:
        body += [*_words(change.note, width, "dim"), *hunk_lines(change.hunks, width)]
    if denied:
        body += _words(f"It cannot be approved now: {denied}", width, "bold yellow")
    place = f"call {call['call_id']}, attempt {item.question.attempt}, in {workspace}"
    why = item.question.reason or call.get("reason") or ""
    details = [*_words(place, width, "dim"), *_words(why, width, "dim")]
    return Page(head, body, lambda: [*head, *details, *_whole(call, change, width)], details)


def _is_about_risk(item: OpenQuestion) -> bool:
    """Whether the policy asks because of the risk, or of what makes it high, which the title says."""
    call = item.call
    reason = item.question.reason or call.get("reason", "")
    if (call.get("rule") or "").startswith("risk "):
        return True
    beginning = f"{call['tool_name']} has {call.get('risk', 'medium')} risk"
    _, _, cause = reason.partition(": ")
    return reason.startswith(beginning) or (bool(cause) and cause.rstrip(".") in call.get("risk_reason", ""))


def call_rows(items: Sequence[OpenQuestion], workspace: Path, width: int) -> list[Text]:
    """One numbered line for each call: tool, what it is about, risk and reason."""
    rows = []
    for number, item in enumerate(items, 1):
        call = item.call
        summary = str(call.get("summary") or call["tool_name"])
        change = _change(call, workspace)
        if change is not None:
            summary = _name(call, change)
        elif not summary.startswith(call["tool_name"]):
            summary = f"{call['tool_name']}  {summary.removeprefix('$ ')}"
        name, style = _RISKS.get(call.get("risk", "medium"), _RISKS["medium"])
        risk = _SEPARATOR.join(filter(None, (name, call.get("risk_reason", ""))))
        if item.question.kind == "recovery":
            risk, style = _state(item)[0], "yellow"
        elif call.get("requires_input"):
            risk, style = "question", "cyan"
        number_width = len(str(len(items)))
        rows.append((f"  {number:>{number_width}}  ", safe_text(summary), safe_text(risk), style))
    room = width - 1 - len(rows[0][0])
    right = min(max(shown.cell_len for _, _, shown, _ in rows), room * 2 // 5)
    lines = []
    for gutter, text, shown, style in rows:
        text.truncate(room - right - _GAP, overflow="ellipsis", pad=True)
        shown.truncate(right, overflow="ellipsis")
        shown.stylize(style)
        lines.append(Text.assemble((gutter, "dim"), text, " " * _GAP, shown))
    return lines


def question_page(
    item: OpenQuestion, width: int, place: str, markdown: Callable[[str], Sequence[Text]] | None = None
) -> Page:
    """The page of a question of the model: what it wants to know, and its options, or its plan as Markdown."""
    text, options = question_and_options(item.call)
    is_plan = item.call["tool_name"] == PLAN_TOOL
    head = [*_asker(item, width), *_title("Plan" if is_plan else "Question", place, "", "", width)]
    if is_plan and markdown is not None:
        body = list(markdown(text))
    else:
        body = block(text, width, "  ", style="" if is_plan else "bold")
    for position, option in enumerate(() if is_plan else options, 1):
        body += fold(safe_text(option), width, f"  {position}  ", "     ")
    return Page(head, body, lambda: [*head, *body])


def recovery_page(item: OpenQuestion, width: int, place: str, sandbox: SandboxInfo | None = None) -> Page:
    """The page of an interrupted call: what is known of it, and what a check found."""
    call = item.call
    state, sentence = _state(item)
    head = [*_asker(item, width), *_title(call["tool_name"], place, state, "yellow", width)]
    is_command = call["tool_name"] == "bash" or (sandbox is not None and call["tool_name"] in sandbox.tools)
    body = _arguments(call["arguments"], None, width, is_command=is_command)
    known = [f"attempt {item.question.attempt}"]
    for name in ("started", "approved", "asked"):
        if when := call.get(f"{name}_at"):
            known.insert(0, f"{name} {format_time(str(when))} ({format_age(str(when))})")
            break
    body += _words(", ".join(known), width)
    if item.processes:
        pids = ", ".join(map(str, item.processes))
        is_one = len(item.processes) == 1
        count = f"{format_count(len(item.processes), 'process')} still running (pid {pids})"
        body += _words(f"{count}; a retry ends {'it' if is_one else 'them'} first", width, "yellow")
    output: list[Text] = []
    if item.partial_output:
        output = block(item.partial_output, width, style="dim")
        before = len(output) - _OUTPUT
        left_out = [Text(f"  │ … {format_count(before, 'line')} before", "dim")] if before > 0 else []
        body += [Text("  output so far:"), *left_out, *output[-_OUTPUT:]]
    hint = _FOUND.get(item.finding_verdict, "")
    body += _words(" ".join(filter(None, (item.finding or sentence, hint))), width, "bold")
    return Page(head, body, lambda: [*head, *body, *(output if len(output) > _OUTPUT else ())])


def _name(call: Mapping[str, Any], change: "_Change | None") -> str:
    """The tool, and the file with the lines that it changes."""
    if change is None:
        return str(call["tool_name"])
    return f"{call['tool_name']} {change.name}{'' if change.note else f'  {change.lines}'}"


def _state(item: OpenQuestion) -> tuple[str, str]:
    """What is known of an interrupted call, in two words and as a sentence."""
    reason = item.question.reason or item.call.get("reason") or "outcome_unknown"
    return _STATES.get(reason, ("interrupted", reason.replace("_", " ")))


def _asker(item: OpenQuestion, width: int) -> list[Text]:
    """Which sub-agent asks, if one does."""
    return fold(safe_text(f"sub-agent {item.sub_agent!r} asks", "bold cyan"), width) if item.sub_agent else []


def _title(name: str, place: str, right: str, style: str, width: int) -> list[Text]:
    """What is asked about, which of how many it is, and its risk at the right, or below where that is too long."""
    left = Text.assemble((place and f"{place}{_SEPARATOR}", "bold"), safe_text(name, "bold"))
    shown = safe_text(right, style)
    room = width - 1 - left.cell_len - shown.cell_len
    if right and room >= _GAP:
        return [Text.assemble(left, " " * room, shown)]
    return [*fold(left, width), *(fold(shown, width - 1, "  ", by_words=True) if right else ())]


def _words(text: str, width: int, style: str = "") -> list[Text]:
    """A sentence of the program, wrapped; none if it is empty."""
    return fold(safe_text(text, style), width, "  ", by_words=True) if text else []


class _Change(NamedTuple):
    """What a diff shows."""

    name: str
    """The file, relative to the workspace if it is in it."""
    path: str
    lines: str
    """How many are added and removed."""
    note: str
    """Of a new file, its size."""
    hunks: Sequence[Hunk]
    shown: Sequence[str]
    """Texts of which every byte is in those hunks, or in the file already."""

    def covers(self, value: object) -> bool:
        """Whether the diff shows all of an argument: a text, or texts in lists and objects."""
        match value:
            case str():
                return any(value in text for text in self.shown)
            case dict():
                return all((name in _CHANGED and self.covers(one)) or one is False for name, one in value.items())
            case list():
                return all(map(self.covers, value))
            case _:
                return False


def _change(call: Mapping[str, Any], workspace: Path) -> _Change | None:
    """The change of a file that the preview of a call shows as a diff."""
    preview = call.get("preview") or {}
    head, hunks = parse_diff(str(preview.get("text", ""))) if preview.get("kind") == "diff" else ([], [])
    paths = [line.removeprefix("+++ ") for line in head if line.startswith("+++ ")]
    if not hunks or not paths:
        return None
    path = Path(paths[0])
    name = str(path.relative_to(workspace) if path.is_relative_to(workspace) else path)
    added, removed = (sum(line[:1] == sign for hunk in hunks for line in hunk.lines) for sign in "+-")
    counted, note = f"+{added} −{removed}" if removed else f"+{added}", ""
    content = call["arguments"].get("content")
    known = [content] if isinstance(content, str) and _is_all_but(hunks, content) else []
    if head[0] == "--- /dev/null":
        if isinstance(content, str) and "full" in preview:
            # The stored diff is cut; a new file is its content.
            lines, known = content.removesuffix("\n").split("\n"), [content]
            hunks, counted = [Hunk(0, 1, tuple(f"+{line}" for line in lines))], f"+{len(lines):,}"
        note = f"new file, {_size(content if isinstance(content, str) else hunks[0].side('+'))}"
    given = {key: value for key, value in call["arguments"].items() if key in _CHANGED}
    change = _Change(name, str(path), counted, note, hunks, [*known, *_sides(hunks)])
    for context in _CONTEXTS:
        # More unchanged lines around the change are shown where the arguments hold them.
        trimmed = [piece for hunk in hunks for piece in hunk.trimmed(context)]
        shorter = change._replace(hunks=trimmed, shown=[*known, *_sides(trimmed)])
        if shorter.covers(given):
            return shorter
    return change


def _sides(hunks: Sequence[Hunk]) -> list[str]:
    return [hunk.side(sign) for hunk in hunks for sign in "-+"]


def _is_all_but(hunks: Sequence[Hunk], content: str) -> bool:
    """Whether the content has these hunks where they say; all the rest of it is in the file already."""
    lines = content.split("\n")
    sides = [(max(hunk.new - 1, 0), hunk.side("+").removesuffix("\n")) for hunk in hunks if hunk.side("+")]
    return all(lines[start:][: side.count("\n") + 1] == side.split("\n") for start, side in sides)


def _size(text: str) -> str:
    count = text.removesuffix("\n").count("\n") + 1 if text else 0
    size = len(text.encode(errors="surrogatepass"))
    shown = format_count(size, "byte") if size < 10_000 else f"{size // 1000:,} KB"
    return f"{format_count(count, 'line')}, {shown}"


def _arguments(
    arguments: Mapping[str, Any], change: _Change | None, width: int, *, is_command: bool = False
) -> list[Text]:
    """The command, and every argument under its name that neither the command nor the diff shows."""
    shown: list[Text] = []
    small: list[str] = []
    for name, value in arguments.items():
        if is_command and name == "command" and isinstance(value, str):
            shown[:0] = _command(value, width)
        elif change is not None and (
            (name in _CHANGED and change.covers(value))
            or (name == "file_path" and value in (change.name, change.path))
        ):
            continue
        elif isinstance(value, bool | int | float) or value is None:
            small.append(f"{name}: {json.dumps(value)}")
        else:
            shown += _argument(name, value, width)
    return [*shown, *fold(safe_text(_SEPARATOR.join(small)), width, "  ", "  │ ")] if small else shown


def _command(command: str, width: int) -> list[Text]:
    first, *more = command.split("\n")
    lines = fold(safe_text(first, "bold"), width, "  $ ", "    ")
    for line in more:
        lines += fold(safe_text(line, "bold"), width, "  │ ", "    ")
    return lines


def _argument(name: str, value: object, width: int) -> Iterator[Text]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "\n" not in text:
        label = f"  {safe_text(name).plain}: "
        yield from fold(safe_text(text), width, label, f"{' ' * (cell_len(label) - 2)}│ ")
        return
    ending = "" if text.endswith("\n") else ", without a newline at the end"
    yield from fold(safe_text(f"{name}: {_size(text)}{ending}"), width, "  ", "  │ ")
    yield from block(text, width)


def _effects(call: Mapping[str, Any], workspace: Path) -> Iterator[str]:
    """The lines of a preview in words that neither the arguments nor the workspace make obvious."""
    preview = call.get("preview") or {}
    if preview.get("kind") == "diff" and parse_diff(str(preview.get("text", "")))[1]:
        return
    command = call["arguments"].get("command")
    given = [one for one in call["arguments"].values() if isinstance(one, str)]
    given = [_bare(one) for one in ([command] if isinstance(command, str) else given)]
    for line in str(preview.get("text", "")).splitlines():
        label, _, value = line.partition(" ")
        value = value.strip()
        is_said = value == str(workspace) or (
            label in ("runs", "writes", "unclear")
            and (
                any(_bare(value.removeprefix(f"{workspace}/")) in text for text in given)
                or value in call.get("risk_reason", "")
            )
        )
        if line.strip() and not is_said and not any(_bare(line) in text for text in given):
            yield line


def _bare(text: str) -> str:
    """The words of a shell text, without quotes and with one blank between two."""
    return " ".join(_QUOTES.sub("", text).split())


def _sandbox_lines(sandbox: SandboxInfo, width: int, *, is_high: bool) -> list[Text]:
    """Where the command would run, if there is no sandbox, or if it may need more than the sandbox allows."""
    if sandbox.is_active:
        return _words(f"sandbox: {sandbox.description}", width, "dim") if is_high else []
    name = "sandbox off" if sandbox.name == "off" else "no sandbox"
    return _words(f"{name}: {sandbox.description}", width, "yellow")


def _whole(call: Mapping[str, Any], change: _Change | None, width: int) -> Iterator[Text]:
    """Every argument in full, and the preview as it was stored; the content of a new file once."""
    if change is not None and change.note:
        yield from _arguments(call["arguments"], change, width)
        yield from _words(change.note, width, "dim")
        yield from hunk_lines(change.hunks, width)
        return
    for name, value in call["arguments"].items():
        yield from _argument(name, value, width)
    preview = call.get("preview") or {}
    show = diff_lines if preview.get("kind") == "diff" else block
    if preview.get("text"):
        yield from show(str(preview["text"]), width)
