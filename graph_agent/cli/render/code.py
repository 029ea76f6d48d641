"""Code that arrives line by line, in colours where its language is known. Knows nothing of the text around it."""

from rich.syntax import Syntax
from rich.text import Text

__all__ = ["Code"]

_THEME = Syntax.get_theme("ansi_dark")
_CONTEXT_LINES = 8
"""How many earlier lines are looked at again for a line's colours: what a word means may depend on them."""
_GO_ON = ("Token.Literal.String", "Token.Comment.Multiline")
"""What may begin on one line and end on a later one."""


class Code:
    """One piece of code; each line comes back with its colours, which later lines never change."""

    def __init__(self, language: str) -> None:
        self._lexer = Syntax("", language).lexer if language else None
        self._before: list[str] = []
        self._is_open = False
        """Whether a string or a comment goes on over the end of the last line."""

    def line(self, line: str) -> Text:
        """The next line, finished."""
        shown, is_open = self._seen(line)
        if self._is_open and not is_open:
            # Without its beginning, the end of a string would look like the beginning of one.
            self._before.clear()
        elif not is_open:
            self._before = [*self._before, line][-_CONTEXT_LINES:]
        elif not self._is_open:
            self._before.append(line)
        self._is_open = is_open
        return shown

    def look(self, line: str) -> Text:
        """The next line as it looks until now."""
        return self._seen(line)[0]

    def _seen(self, line: str) -> tuple[Text, bool]:
        if self._lexer is None:
            return Text(line), False
        shown, number, last = Text(), 0, ""
        for kind, text in self._lexer.get_tokens("\n".join((*self._before, line))):
            pieces = text.split("\n")
            for place, piece in enumerate(pieces):
                if number == len(self._before) and piece:
                    shown.append(piece, _THEME.get_style_for_token(kind))
                number += place < len(pieces) - 1
            last = str(kind)
        # A lexer that changes the text, such as one that drops a character, is not to be trusted with it.
        return shown if shown.plain == line else Text(line), last.startswith(_GO_ON)
