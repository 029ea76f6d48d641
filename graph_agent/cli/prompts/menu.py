"""Menus: rows, of which one is chosen with the arrows, by number or by typing a part; and what completes a line."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import FormattedTextControl, Layout, Window
from prompt_toolkit.output import Output

from graph_agent.cli.prompts.keyboard import ALT_S, ESCAPE_S, InputCancelled, InputClosed
from graph_agent.cli.prompts.terminal_output import prompt_style
from graph_agent.cli.views.table import text_width, truncate
from graph_agent.wording import escape

__all__ = ["Menu", "Picked", "Row", "bind_completing", "format_rows", "is_completed", "wait_for_escape"]

_SHOWN = 10
"""How many rows are shown at once."""
_GAP = "  "
_OPENS_MENU = re.compile(r"^/[^\s/]*(?: [^\s]*)?$|(?:^|[\s(\[{])@[^\s]*$")
_COMPLETION_S, _LOOK_S = 1.0, 0.02
_USUAL_ESCAPE_S, _USUAL_ALT_S = 0.5, 1.0
"""The same at the prompt, as prompt_toolkit has them: Esc and another key are one command there."""
_DETAILS = "d"
_SIGNS = {"+": "class:added", "-": "class:removed"}


class Row(NamedTuple):
    """One row: short columns, the words that are cut where the screen is narrow, and a note at the right."""

    key: str
    """What choosing it returns."""
    columns: tuple[str, ...]
    words: str
    note: str = ""


class Picked(NamedTuple):
    """What was chosen."""

    key: str
    variant: str = ""


@dataclass(slots=True)
class Menu:
    """The rows and what is selected; `run` shows it."""

    title: str
    rows: Sequence[Row]
    variants: Mapping[str, str] = field(default_factory=dict)
    """Keys, and the variant of the choice that each selects; the first at the beginning. With variants no filter
    is typed."""
    actions: Mapping[str, str] = field(default_factory=dict)
    """Keys that choose the selected row at once, and the variant of that choice; also without a filter."""
    preview: Callable[[str], Sequence[str]] = lambda _: ()
    """Lines about the selected row."""
    details: Callable[[str], Sequence[str]] | None = None
    """What the key d shows of the selected row."""
    _typed: str = ""
    _selected: int = 0
    _variant: str = ""
    _has_details: bool = False

    def __post_init__(self) -> None:
        self._variant = next(iter(self.variants.values()), "")

    @property
    def _has_filter(self) -> bool:
        return not self.variants and not self.actions

    @property
    def matching(self) -> list[Row]:
        """The rows that hold every typed word."""
        if not self._has_filter:
            return list(self.rows)
        words = self._typed.casefold().split()
        return [
            row
            for row in self.rows
            if all(w in f"{' '.join(row[1])} {row.words} {row.note}".casefold() for w in words)
        ]

    def lines(self, width: int, height: int = 24) -> list[tuple[str, str]]:
        """Each line with its style."""
        rows = self.matching
        first = min(max(self._selected - _SHOWN // 2, 0), max(len(rows) - _SHOWN, 0))
        shown = rows[first : first + _SHOWN]
        note = self._typed or "type to filter" if self._has_filter else ""
        note = f"{self._variant} ({' '.join(self.variants)})" if self.variants else note
        room = max(width - text_width(self.title) - len(_GAP), 0)
        lines = [("bold", f"{self.title}{truncate(note, room).rjust(room + len(_GAP))}")]
        for number, text in enumerate(format_rows(shown, width - 3), first):
            is_selected = number == self._selected
            lines.append(("reverse" if is_selected else "", f" {'›' if is_selected else ' '} {text}"))
        if not rows:
            lines.append(("", "   Nothing matches."))
        elif about := self.preview(rows[self._selected].key):
            lines += [("class:muted", f"   {truncate(escape(line), width - 4)}") for line in about]
        more = f" · {len(rows) - len(shown)} more" if len(rows) > len(shown) else ""
        if self._has_details and rows:
            lines += self._detail_lines(rows[self._selected].key, width, max(height - len(lines) - 2, _SHOWN))
        show = " · d hide diff" if self._has_details else " · d show diff" if self.details else ""
        actions = "".join(f" · {key} {does}" for key, does in self.actions.items())
        return [*lines, ("class:muted", truncate(f"↑↓ Enter{actions}{show} · esc to leave{more}", width - 1))]

    def _detail_lines(self, key: str, width: int, room: int) -> list[tuple[str, str]]:
        details = [escape(line.expandtabs()) for line in (self.details(key) if self.details else ())]
        hidden = len(details) - room
        more = [f"… {hidden + 1} more lines"] if hidden > 0 else []
        shown = details[: room - 1] if more else details
        return [(_SIGNS.get(line[:1], ""), truncate(f"   {line}", width - 1)) for line in (*shown, *more)]

    def press(self, key: str) -> None:
        """A character was typed."""
        if key == _DETAILS and self.details is not None:
            self._has_details = not self._has_details
            return
        if key in self.variants:
            self._variant = self.variants[key]
            return
        if not self._has_filter:
            numbers = [position for position, row in enumerate(self.rows) if row.columns[0] == self._typed + key]
            self._typed = self._typed + key if numbers else key
            numbers = numbers or [position for position, row in enumerate(self.rows) if row.columns[0] == key]
            self._selected = numbers[0] if numbers else self._selected
        else:
            self._typed, self._selected = self._typed + key, 0

    def _move_by(self, steps: int, _: KeyPressEvent) -> None:
        self.move(steps)

    def move(self, steps: int) -> None:
        """Select a row above or below."""
        self._selected = min(max(self._selected + steps, 0), max(len(self.matching) - 1, 0))

    def delete_last(self) -> None:
        """Delete the last typed character."""
        self._typed, self._selected = self._typed[:-1], 0 if self._has_filter else self._selected

    def pick(self, typed: str) -> Picked | None:
        """What a line chooses where no keys are read: a number, with the key of an action or variant behind it."""
        found = re.fullmatch(r"0*(\d{1,9})\s*(\S?)", typed)
        keys = {"": self._variant, **self.actions, **self.variants}
        if found is None or found[1] not in self._numbers or found[2] not in keys:
            return None
        return Picked(self.rows[self._numbers.index(found[1])].key, keys[found[2]])

    @property
    def _numbers(self) -> list[str]:
        """What a typed line calls the rows: the numbers that keys choose them by, else their positions."""
        if self._has_filter or self.actions:
            return [str(number) for number in range(1, len(self.rows) + 1)]
        return [row.columns[0] for row in self.rows]

    def as_text(self, width: int) -> str:
        """All rows with their numbers, for where no keys are read."""
        numbers = self._numbers
        has_own = numbers == [row.columns[0] for row in self.rows]
        texts = format_rows(self.rows, width - 6)
        rows = (f"{'' if has_own else number:>3}  {text}" for number, text in zip(numbers, texts, strict=True))
        return "\n".join([self.title, *rows, ""])

    @property
    def question(self) -> str:
        """What is asked below that."""
        choices = {key: f"for {name} only" for key, name in self.variants.items() if name != self._variant}
        actions = "".join(f", NUMBER {key} {does}" for key, does in {**choices, **self.actions}.items())
        details = f", {_DETAILS} NUMBER to show its diff" if self.details else ""
        return f"Number{actions}{details}, empty to leave > "

    async def choose_by_number(
        self, answer: Callable[[str], Awaitable[str | None]], write: Callable[[str], object]
    ) -> Picked | None:
        """Ask for a number until it is that of a row; None if the person leaves."""
        with contextlib.suppress(InputCancelled, InputClosed):
            while typed := (await answer(self.question) or "").strip():
                if (picked := self.pick(typed)) is not None:
                    return picked
                write(self.details_of(typed) or f"{escape(typed)} is not one of these numbers.\n")
        return None

    def details_of(self, typed: str) -> str:
        """What a line asks for that names a row and the key d."""
        found = self.pick(typed.removeprefix(_DETAILS).strip()) if typed.startswith(_DETAILS) else None
        if found is None or self.details is None:
            return ""
        return "".join(f"{escape(line.expandtabs())}\n" for line in self.details(found.key))

    @property
    def picked(self) -> Picked | None:
        """The selected row."""
        rows = self.matching
        return Picked(rows[self._selected].key, self._variant) if rows else None

    def application(self, source: Input, output: Output) -> Application[Picked | None]:
        """What shows the menu until something is chosen; its result is None if the person leaves."""

        def fragments() -> StyleAndTextTuples:
            size = output.get_size()
            lines = self.lines(size.columns, size.rows)
            return [
                (style, f"{text}\n" if number < len(lines) else text)
                for number, (style, text) in enumerate(lines, 1)
            ]

        app: Application[Picked | None] = Application(
            layout=Layout(Window(FormattedTextControl(fragments, show_cursor=False), dont_extend_height=True)),
            key_bindings=self._keys(),
            input=source,
            output=output,
            erase_when_done=True,
            style=prompt_style(),
        )
        app.ttimeoutlen = app.timeoutlen = ESCAPE_S
        return app

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        for name, steps in {
            "up": -1,
            "c-p": -1,
            "down": 1,
            "c-n": 1,
            "pageup": -_SHOWN,
            "pagedown": _SHOWN,
        }.items():
            keys.add(name)(partial(self._move_by, steps))

        @keys.add("enter")
        def _choose(event: KeyPressEvent) -> None:
            if (picked := self.picked) is not None:
                event.app.exit(result=picked)

        @keys.add("escape")
        @keys.add("c-c")
        @keys.add("c-d")
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        @keys.add(Keys.Any)
        def _type(event: KeyPressEvent) -> None:
            if event.data in self.actions and (picked := self.picked) is not None:
                event.app.exit(result=Picked(picked.key, self.actions[event.data]))
            elif event.data.isprintable() and len(event.data) == 1:
                self.press(event.data)

        keys.add("backspace")(lambda _: self.delete_last())
        return keys


def format_rows(rows: Sequence[Row], width: int) -> list[str]:
    """The rows in columns that fit the width."""
    if not rows:
        return []
    widths = [max(text_width(row.columns[number]) for row in rows) for number in range(len(rows[0].columns))]
    room = width - sum(widths) - len(_GAP) * len(widths)
    beside = room - len(_GAP) - max(text_width(escape(row.words)) for row in rows)
    note = min(max(text_width(row.note) for row in rows), max(beside, width // 3))
    room = max(room - (note + len(_GAP) if note else 0), 1)
    lines = []
    for row in rows:
        cells = [f"{cell}{' ' * (size - text_width(cell))}" for cell, size in zip(row.columns, widths, strict=True)]
        words = truncate(escape(row.words), room)
        cells.append(f"{words}{' ' * (room - text_width(words))}" if note else words)
        if note:
            cells.append(truncate(escape(row.note), note))
        lines.append(_GAP.join(cells).rstrip())
    return lines


@Condition
def is_completed() -> bool:
    """Whether the menu opens while typing: in a slash command, in its first argument, and in a word after an @."""
    text = get_app().current_buffer.document.text_before_cursor
    return _OPENS_MENU.search(text) is not None


def bind_completing(keys: KeyBindings) -> None:
    """Tab completes at once, and Esc closes the menu of what completes the line before it does anything else."""
    tab = keys.add("c-i", filter=~has_completions & ~is_searching)
    tab(lambda event: event.app.create_background_task(_complete_soon(event.current_buffer)))
    keys.add("escape", filter=has_completions)(lambda event: event.current_buffer.cancel_completion())


def wait_for_escape(app: Application[Any]) -> None:
    """Set how long Esc waits for another key: two in a row are one command, unless the first closes a menu."""
    if app.editing_mode is EditingMode.EMACS:
        is_open = app.current_buffer.complete_state is not None
        app.ttimeoutlen, app.timeoutlen = (ESCAPE_S, ALT_S) if is_open else (_USUAL_ESCAPE_S, _USUAL_ALT_S)


async def _complete_soon(buffer: Buffer) -> None:
    """Complete as soon as the completion that typing began is over: prompt_toolkit would ignore Tab meanwhile."""
    text = buffer.text
    for _ in range(round(_COMPLETION_S / _LOOK_S)):
        if buffer.text != text:
            return
        if buffer.complete_state is not None and buffer.complete_state.completions:
            buffer.complete_next()
            return
        buffer.start_completion(insert_common_part=True)
        await asyncio.sleep(_LOOK_S)
