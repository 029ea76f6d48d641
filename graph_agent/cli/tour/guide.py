"""Tells what is to be seen and takes the answers: from the person at the terminal, or by itself where none is.

Knows nothing of the commands in between.
"""

import sys
import termios
import textwrap
from collections.abc import Mapping

import typer

from graph_agent.cli.codes import Exit
from graph_agent.cli.views.screen import colored, line_width, print_lines

__all__ = ["Guide"]

_WIDTH = 80


class Guide:
    """Speaks to whoever watches."""

    def __init__(self, *, is_asking: bool) -> None:
        self._is_asking = is_asking

    def title(self, text: str) -> None:
        """Begin a step; a person says when."""
        if self._is_asking:
            self._line("\n[Enter] goes on > ")
        print_lines(["", *(colored(line, "found") for line in _wrapped(text))])

    def say(self, text: str) -> None:
        """A remark on what was just seen, or comes next."""
        print_lines(["", *(colored(line, "running") for line in _wrapped(text))])

    def choose(self, question: str, keys: Mapping[str, str], by_itself: str) -> str:
        """The key of an answer; where nobody is asked, the one named for that."""
        offered = "  ".join(keys.values())
        self.say(question)
        if not self._is_asking:
            print_lines([f"{offered} > {by_itself}"])
            return by_itself
        while (typed := self._line(f"{offered} > ").strip().lower()[:1]) not in keys:
            print_lines([f"Type {', '.join(list(keys)[:-1])} or {list(keys)[-1]}, then Enter."])
        return typed

    @staticmethod
    def _line(prompt: str) -> str:
        """A line from the keyboard; its end ends the demo."""
        if sys.stdin.isatty():  # What was typed before a question is no answer to it.
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        sys.stdout.write(prompt)
        sys.stdout.flush()
        typed = sys.stdin.readline()
        if not typed:
            print_lines([""])
            raise typer.Exit(Exit.INTERRUPTED)
        return typed


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, min(line_width() or _WIDTH, _WIDTH), break_on_hyphens=False)
