"""What might be run by a text that cannot be read: too much rather than too little, for rules that deny and ask."""

import re

from policy.simple import SimpleCommand

__all__ = ["rough_commands"]

_CUTS = re.compile(r"[;&|\n\r(){}<>`]+|\$\(")
_QUOTES = re.compile(r"[\"'\\]")


def rough_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Everything between two signs that could separate commands, with and without its quotes."""
    found: dict[tuple[str, ...], None] = {}
    for part in _CUTS.split(text):
        for form in (_QUOTES.sub("", part), *re.split(r"[\"']", part)):
            if words := tuple(form.split()):
                found[words] = None
    return tuple(SimpleCommand(words) for words in found)
