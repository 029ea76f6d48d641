"""Code that arrives line by line, in colours where its language is known. Knows nothing of the text around it."""

from rich.syntax import Syntax
from rich.text import Text

__all__ = ["Code"]

_CONTEXT_LINES = 48
"""How many earlier lines are looked at again for a line's colours: a text may have begun on one of them."""


class Code:
    """One piece of code; each line comes back with its colours, which later lines never change."""

    def __init__(self, language: str) -> None:
        self._syntax = Syntax("", language, theme="ansi_dark", background_color="default") if language else None
        self._before: list[str] = []

    def line(self, line: str) -> Text:
        """The next line, finished."""
        shown = self.look(line)
        if self._syntax is not None:
            self._before.append(line)
            if len(self._before) > _CONTEXT_LINES:
                del self._before[: _CONTEXT_LINES // 2]
        return shown

    def look(self, line: str) -> Text:
        """The next line as it looks until now."""
        if self._syntax is None or not line.strip():
            return Text(line)
        whole = self._syntax.highlight("\n".join((*self._before, line)))
        shown = whole.split("\n", allow_blank=True)[len(self._before)]
        # A lexer that changes the text, such as one that drops a character, is not to be trusted with it.
        return shown if shown.plain == line else Text(line)
