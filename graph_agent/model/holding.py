"""Holds back what may be a call while a reply streams in as text, so that nobody is shown one. Knows no calls."""

import re

__all__ = ["HeldText"]

_MAY_BEGIN_CALL = re.compile(r"<[\w｜|/]|\[TOOL_CALL|^\s*[\[{]|^\s*```\s*(?:json|tool\w*)?\s*$")


class HeldText:
    """Takes text piece by piece and gives whole lines, up to the first that may begin a call."""

    def __init__(self) -> None:
        self._shown = ""
        self._kept = ""
        self._is_holding = False

    def feed(self, text: str) -> str:
        """What can be shown now."""
        self._kept += text
        before = len(self._shown)
        while not self._is_holding and "\n" in self._kept:
            line, _, rest = self._kept.partition("\n")
            self._is_holding = _MAY_BEGIN_CALL.search(line) is not None
            if not self._is_holding:
                self._shown, self._kept = f"{self._shown}{line}\n", rest
        return self._shown[before:]

    def rest(self, text: str) -> str:
        """What is still to be shown once it is known which text stands around the calls."""
        if text.startswith(self._shown):
            return text[len(self._shown) :]
        shown = self._shown.rstrip()
        return text[len(shown) :].lstrip() if text.startswith(shown) else ""
