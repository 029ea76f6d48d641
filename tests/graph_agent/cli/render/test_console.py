import io
import os
import sys

import pytest

from graph_agent.cli.render.console import make_console


def test_markup_emoji_codes_and_numbers_are_printed_as_they_are() -> None:
    stream = io.StringIO()

    make_console(stream).print("[red]x[/] :smile: 42")

    assert stream.getvalue() == "[red]x[/] :smile: 42\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", ["dumb", "unknown", "xterm"])
def test_a_terminal_of_any_kind_is_as_wide_as_it_says(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(sys, "stdout", _Terminal())
    monkeypatch.setenv("TERM", kind)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((60, 24)))

    assert make_console().width == 60
