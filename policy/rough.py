"""What might be run by a text that cannot be read: too much rather than too little, for rules that deny and ask."""

import re

from policy.simple import SimpleCommand

__all__ = ["rough_commands", "rough_endings"]

_CUTS = re.compile(r"[;&|\n\r(){}<>`]+|\$\(")
_QUOTES = re.compile(r"[\"'\\]")
_BEFORE_A_COMMAND = re.compile(
    r"!|if|then|elif|else|do|while|until|time|coproc|[A-Za-z_]\w*(?:\[.*\])?\+?=.*", re.DOTALL
)
_MOST_BEFORE = 50
"""So many words before a command are each taken for its beginning; of more, the first of them and the command."""


def rough_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Everything between two signs that could separate commands, with and without its quotes."""
    found: dict[tuple[str, ...], None] = {}
    for part in _CUTS.split(text):
        for form in (_QUOTES.sub("", part), *re.split(r"[\"']", part)):
            words = tuple(form.split())
            first = next((at for at, word in enumerate(words) if not _BEFORE_A_COMMAND.fullmatch(word)), len(words))
            for at in (*range(min(first, _MOST_BEFORE)), first):
                if at < len(words):
                    found[words[at:]] = None
    return tuple(SimpleCommand(words) for words in found)


def rough_endings(text: str) -> tuple[SimpleCommand, ...]:
    """What is found in a language that puts a sign or a word of its own before a command: every ending."""
    found: dict[tuple[str, ...], None] = {}
    for command in rough_commands(text):
        for at, word in enumerate(command.words):
            found[(word.lstrip("!:.+-*@"), *command.words[at + 1 :])] = None
    return tuple(SimpleCommand(words) for words in found)
