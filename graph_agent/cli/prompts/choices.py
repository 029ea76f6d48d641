"""The keys of a question, the one line that shows them, how they are chosen, and which one a line stands for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from rich.cells import cell_len

from graph_agent.cli.prompts.keyboard import (
    InputCancelled,
    InputClosed,
    InputInterrupted,
    bind_leaving,
    clear,
    end_of,
)
from graph_agent.cli.views.table import truncate, wrap_line
from graph_agent.wording import BACK, Choice

__all__ = [
    "END",
    "HELP",
    "HIDDEN",
    "NOTHING_TYPED",
    "NOT_A_KEY",
    "OTHERS",
    "VIEW",
    "KeyLine",
    "bind_answering",
    "for_all",
    "match_choice",
    "prompt_fragments",
]

_INPUT_WIDTH = 8
"""Room to type behind a text."""
_TYPED = 3
"""Room for what is typed behind the keys."""
_SEPARATOR, _PROMPT = " · ", " › "


VIEW = Choice("v", "view all", "show all of it in $PAGER, or page by page", ("view",), 1)
OTHERS = Choice("↑↓", "choose", "show another of the calls, as its number does; then answer it", (), 2)
HELP = Choice("?", "help", "explain the keys", ("help",))
END = Choice("e", "end processes", "end those of its processes that still run, then decide", ("end",), 4)
"""Offered while processes of the earlier attempt are alive."""
NOT_A_KEY = "Type one of these keys, or choose one with the arrows; ? explains them."
NOTHING_TYPED = "Type your answer, or one of these keys; ? explains them."
HIDDEN = 9
"""The rank of a key that is understood and never on the line."""


def for_all(choices: Sequence[Choice], count: int, words: Mapping[str, str]) -> list[Choice]:
    """Each choice with the one beside it that answers all questions of the kind: its capital letter.

    Args:
        words: for a key the label of the one for all, in which `{}` is how many there are.
    """
    found = []
    for choice in choices:
        found.append(choice)
        if choice.key in words:
            every = f"the same for all {count}; those not shown yet are shown first"
            found.append(Choice(choice.key.upper(), words[choice.key].format(count), every, (), 1))
    return found


def match_choice(line: str, choices: Sequence[Choice]) -> str | None:
    """The key that a line stands for; None if it is none."""
    typed = line.strip()
    if any(choice.key == typed for choice in choices if choice is not OTHERS):
        return typed
    folded = typed.casefold()
    return next((choice.key for choice in choices if folded in (choice.key, choice.label, *choice.words)), None)


@dataclass(frozen=True, slots=True)
class KeyLine:
    """The choices of a question, on one line of any terminal of 60 columns or more."""

    choices: Sequence[Choice]
    rows: Mapping[str, str] = field(default_factory=dict)
    """What the arrows up and down put on the line, beside the keys: the numbers of a list. While one is there, what
    Enter does takes the place of the keys."""
    text: str = ""
    """Ahead of the keys."""

    def fragments(self, width: int, typed: str = "") -> list[tuple[str, str]]:
        """The line in pieces with their styles; the choice that is typed is marked."""
        if (does := self.rows.get(typed)) is not None:
            return [("reverse", truncate(does, max(width - len(_PROMPT) - _TYPED, 1))), ("", _PROMPT)]
        pieces = [("", self.text)] if self.text else []
        for number, (key, label) in enumerate(self._fitting(width)):
            pieces.append(("", _SEPARATOR if number else ""))
            pieces.append(("reverse" if typed == key else "", f"{key} {label}".rstrip()))
        return [*pieces, ("", _PROMPT)]

    def line(self, width: int) -> str:
        """The same as text."""
        return "".join(text for _, text in self.fragments(width))

    def next_key(self, typed: str, steps: int, *, is_row: bool) -> str | None:
        """The key so many steps from the typed one, for the arrows; None if something else is typed."""
        keys = [one.key for one in self.choices if one is not OTHERS and one.rank < HIDDEN]
        if typed and typed not in (*keys, *self.rows):
            return None
        ring = list(self.rows) if is_row and self.rows else keys
        if typed in ring:
            return ring[(ring.index(typed) + steps) % len(ring)]
        return ring[0 if steps > 0 else -1]

    def explanations(self) -> list[str]:
        """One line for each key."""
        shown = [(f"{one.key} {one.label}", one.explanation) for one in self.choices if one.rank < HIDDEN]
        room = max(len(name) for name, _ in shown)
        return [f"  {name.ljust(room)}  {explanation}" for name, explanation in shown]

    def _fitting(self, width: int) -> list[tuple[str, str]]:
        """The keys on the line, each with its label: where there is no room the rarest are left to the help."""
        shown = [one for one in self.choices if one.rank < HIDDEN]
        rarest = sorted((one for one in shown if one.rank > 0), key=attrgetter("rank"))[::-1]
        room = width - cell_len(self.text) - len(_PROMPT) - _TYPED
        for omitted in range(len(rarest) + 1):
            kept = [one for one in shown if one not in rarest[:omitted]]
            size = sum(len(f"{one.key} {one.label}".rstrip()) + len(_SEPARATOR) for one in kept) - len(_SEPARATOR)
            if size <= room:
                break
        return [(one.key, one.label) for one in kept]


def prompt_fragments(prompt: str | KeyLine, width: int, typed: str) -> list[tuple[str, str]]:
    """A prompt in pieces with their styles; a text that is too wide is folded between words."""
    if isinstance(prompt, KeyLine):
        return prompt.fragments(width, typed)
    room = max(width - _INPUT_WIDTH, _INPUT_WIDTH)
    return [("", "\n".join(wrap_line(prompt.rstrip(), room)) + " ")]


def bind_answering(keys: KeyBindings, current: Callable[[], KeyLine | None]) -> None:
    """Bind what leaves a question, and the arrows that choose among its keys.

    Args:
        current: the keys of the question, None where it is answered in words.
    """

    def leave(event: KeyPressEvent) -> None:
        line = current()
        if line is not None and BACK in line.choices:
            event.app.exit(result=BACK.key)
        elif line is not None and event.current_buffer.text:
            clear(event.current_buffer)
        else:
            is_ctrl_c = event.key_sequence[-1].key in (Keys.ControlC, Keys.SIGINT)
            event.app.exit(exception=InputInterrupted if is_ctrl_c else InputCancelled, style="class:aborting")

    def choose(steps: int, event: KeyPressEvent, *, is_row: bool) -> None:
        if (line := current()) is not None:
            event.current_buffer.document = end_of(
                line.next_key(event.current_buffer.text, steps, is_row=is_row) or ""
            )

    def is_choosing() -> bool:
        """Whether nothing but one of the keys is on the line."""
        line = current()
        return line is not None and line.next_key(get_app().current_buffer.text, 1, is_row=False) is not None

    keys.add("c-d")(lambda event: event.app.exit(exception=InputClosed, style="class:exiting"))
    bind_leaving(keys, leave)
    keys.add("<sigint>")(leave)
    for names, steps in {("left", "s-tab"): -1, ("right", "tab"): 1, ("up",): -1, ("down",): 1}.items():
        for name in names:
            bind = keys.add(name, filter=Condition(is_choosing))
            bind(partial(choose, steps, is_row=name in ("up", "down")))
