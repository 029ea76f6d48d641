"""The keys of a question, and which one a typed line stands for."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "ALL",
    "ALL_APPROVALS",
    "ALL_RECOVERIES",
    "APPROVAL",
    "END",
    "MORE",
    "OUTSIDE",
    "RECOVERY",
    "RULES",
    "SCOPES",
    "Choice",
    "choice_line",
    "match_choice",
]


class Choice(NamedTuple):
    """One answer a person may give."""

    key: str
    word: str
    """Also accepted when typed in full."""
    label: str
    """How it is shown, with its key in brackets."""


APPROVAL = (
    Choice("y", "yes", "[y]es"),
    Choice("a", "always", "[a]lways"),
    Choice("e", "edit", "[e]dit"),
    Choice("n", "no", "[n]o"),
    Choice("r", "reason", "no, with a [r]eason"),
    Choice("s", "stop", "[s]top the turn"),
)
OUTSIDE = Choice("o", "outside", "[o]utside")
"""Yes, outside the sandbox: offered for a command while one is on. The page explains the short label."""
RECOVERY = (Choice("r", "retry", "[r]etry"), Choice("d", "done", "[d]one"), Choice("c", "cancel", "[c]ancel"))
ALL = Choice("all", "together", "[all]")
"""Offered while several questions of a kind are left: the others are shown, then one answer is for all."""
_BACK = Choice("b", "back", "[b]ack")
ALL_APPROVALS = (Choice("y", "yes", "[y]es to all"), Choice("n", "no", "[n]o to all"), _BACK)
ALL_RECOVERIES = (*(choice._replace(label=f"{choice.label} all") for choice in RECOVERY), _BACK)
RULES = (
    Choice("1", "exact", "[1] exactly this, or Enter"),
    Choice("2", "prefix", "[2] with any arguments"),
    _BACK,
)
"""Which rules an "always" stores, where there is a choice; Enter alone takes the narrower ones."""
SCOPES = (
    Choice("t", "thread", "in this [t]hread, or Enter"),
    Choice("p", "project", "in this [p]roject"),
    Choice("u", "user", "everywhere, as this [u]ser"),
    _BACK,
)
"""The scope of an "always"; Enter alone takes the narrowest."""
END = Choice("e", "end", "[e]nd its processes")
"""Offered while processes of the earlier attempt are alive; the call is not retried before they have ended."""
MORE = Choice("m", "more", "[m]ore")
"""Offered while part of the page is hidden; nothing can be approved before all of it was shown."""


def match_choice(line: str, choices: Sequence[Choice], default: str | None = None) -> str | None:
    """The key that a line stands for; None if it is none. An empty line stands for the default."""
    typed = line.strip().casefold()
    if not typed:
        return default
    return next((choice.key for choice in choices if typed in (choice.key, choice.word)), None)


def choice_line(choices: Sequence[Choice]) -> str:
    """The choices as the prompt shows them."""
    return f"{'  '.join(choice.label for choice in choices)} > "
