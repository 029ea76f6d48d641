"""What a shell text would run, read conservatively: every simple command in it, and whether the text is plain.

Plain means that the words are exactly what the shell will see: no expansion, no substitution, no control structure.
Only plain texts can be allowed by a rule. What is not understood makes a text not plain; nothing is ever left out
of the commands because it is nested.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from policy.brackets import closing_backtick, closing_parenthesis
from policy.words import RESERVED, is_invisible

__all__ = ["ShellText", "SimpleCommand", "read_shell"]

_MAX_PLAIN_CHARS = 8192
_MAX_DEPTH = 40
_OPERATORS = ";&|\n()<>"
_BLANKS = " \t"


@dataclass(frozen=True)
class SimpleCommand:
    """Words after quote and escape removal."""

    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The words joined by one blank: what rules match."""
        return " ".join(self.words)


@dataclass(frozen=True)
class ShellText:
    """A text, read."""

    commands: tuple[SimpleCommand, ...]
    written: tuple[str, ...]
    """Targets of write redirections."""
    not_plain: str
    """Why the text is not plain; empty when it is."""


class _HereDocument(NamedTuple):
    delimiter: str
    is_quoted: bool
    strips_tabs: bool


@dataclass
class _Found:
    commands: list[SimpleCommand] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    not_plain: str = ""

    def doubt(self, why: str) -> None:
        self.not_plain = self.not_plain or why


def read_shell(text: str) -> ShellText:
    """Read a whole command text; never fails."""
    found = _Found()
    if len(text) > _MAX_PLAIN_CHARS:
        found.doubt(f"it is longer than {_MAX_PLAIN_CHARS} characters")
    if any(is_invisible(char) for char in text):
        found.doubt("it has control or invisible characters")
    _Reader(text, found, depth=0).read()
    return ShellText(tuple(found.commands), tuple(found.written), found.not_plain)


class _Reader:
    """One pass over a text; nested texts get readers of their own that add to the same findings."""

    def __init__(self, text: str, found: _Found, depth: int) -> None:
        self._text = text
        self._found = found
        self._depth = depth
        self._at = 0
        self._words: list[str] = []
        self._word: str | None = None
        self._is_quoted = False
        self._redirection = ""
        self._documents: list[_HereDocument] = []

    def read(self) -> None:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        self._end_command()

    def read_substitutions(self) -> None:
        """Read a text of which nothing but the substitutions in it is run."""
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in "$`":
                self._expansion()
            else:
                self._at += 2 if char == "\\" else 1

    def _step(self, char: str) -> None:
        match char:
            case "\\":
                self._escape()
            case "'":
                self._single_quotes()
            case '"':
                self._double_quotes()
            case "$" | "`":
                self._expansion()
            case "#" if self._word is None:
                self._at = self._find("\n")
            case _ if char in _BLANKS:
                self._end_word()
                self._at += 1
            case _ if char in _OPERATORS:
                self._operator(char)
            case _:
                self._literal(char)

    def _operator(self, char: str) -> None:
        if char in "<>":
            self._redirect()
        else:
            self._separator(char)

    def _literal(self, char: str) -> None:
        if char in "*?[{}" or (char == "~" and self._word is None):
            self._found.doubt(f"the shell would expand {char!r}")
        self._add(char)
        self._at += 1

    def _add(self, piece: str) -> None:
        self._word = (self._word or "") + piece

    def _escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "\n":
            self._found.doubt("a line goes on after a backslash")
        elif not following:
            self._found.doubt("it ends in a backslash")
            self._is_quoted = True
        else:
            self._add(following)
            self._is_quoted = True
        self._at += 2

    def _single_quotes(self) -> None:
        end = self._find("'", self._at + 1)
        self._add(self._text[self._at + 1 : end])
        self._is_quoted = True
        self._at = end + 1

    def _double_quotes(self) -> None:
        self._add("")
        self._is_quoted = True
        self._at += 1
        while self._at < len(self._text) and (char := self._text[self._at]) != '"':
            if char in "$`":
                self._expansion()
            elif char == "\\" and self._text[self._at + 1 : self._at + 2] in tuple('$`"\\\n'):
                self._add(self._text[self._at + 1].replace("\n", ""))
                self._at += 2
            else:
                self._add(char)
                self._at += 1
        if self._at >= len(self._text):
            self._found.doubt("a quote is not closed")
        self._at += 1

    def _expansion(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if self._text[self._at] == "`":
            end = closing_backtick(self._text, self._at + 1)
            self._nest(self._text[self._at + 1 : end].replace("\\`", "`"))
            self._at = end + 1
        elif following == "(":
            end = closing_parenthesis(self._text, self._at + 2)
            self._nest(self._text[self._at + 2 : end])
            self._at = end + 1
        else:
            if following and (following in "{_'\"@*#?$!-" or following.isalnum()):
                self._found.doubt("the shell would expand a '$'")
            self._add("$")
            self._at += 1

    def _nest(self, text: str) -> None:
        self._add("")
        self._found.doubt("it substitutes a command")
        if self._depth >= _MAX_DEPTH:
            self._found.commands.append(SimpleCommand((text,)))
            return
        _Reader(text, self._found, self._depth + 1).read()

    def _redirect(self, *, takes_number: bool = True) -> None:
        if takes_number and self._word is not None and self._word.isdigit() and not self._is_quoted:
            self._word = None
            if self._redirection:
                self._found.doubt("a redirection has no target")
        self._end_word()
        start = self._at
        if self._text[start : start + 3] == "<<<":
            self._at += 3
        else:
            while self._text[self._at : self._at + 1] in tuple("<>|&") and self._at - start < 2:
                self._at += 1
        operator = self._text[start : self._at]
        if self._text[self._at : self._at + 1] == "(":
            end = closing_parenthesis(self._text, self._at + 1)
            self._nest(self._text[self._at + 1 : end])
            self._at = end + 1
            return
        if operator == "<<" and self._text[self._at : self._at + 1] == "-":
            operator, self._at = "<<-", self._at + 1
        self._redirection = operator

    def _separator(self, char: str) -> None:
        if char == "&" and self._text[self._at + 1 : self._at + 2] == ">":
            self._at += 1
            self._redirect(takes_number=False)
            return
        if char in "()":
            self._found.doubt("it groups commands with parentheses")
        self._end_command()
        self._at += 1
        if char == "\n":
            self._here_documents()

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, self._word = self._word, None
        quoted, self._is_quoted = self._is_quoted, False
        if not self._redirection:
            self._words.append(word)
            return
        operator, self._redirection = self._redirection, ""
        self._redirected(operator, word, is_quoted=quoted)

    def _redirected(self, operator: str, target: str, *, is_quoted: bool) -> None:
        if operator in ("<<", "<<-"):
            self._documents.append(_HereDocument(target, is_quoted, operator == "<<-"))
            self._found.doubt("it has a here-document")
            return
        if operator.endswith("&") and not is_quoted and (target.isdigit() or target == "-"):
            return
        if ">" in operator:
            self._found.written.append(target)
        if target != "/dev/null":
            self._found.doubt(f"it redirects to or from {target!r}")

    def _end_command(self) -> None:
        self._end_word()
        self._redirection = ""
        words, self._words = self._words, []
        while words and words[0] in RESERVED:
            self._found.doubt(f"it uses the shell word {words[0]!r}")
            words = words[1:]
        if words:
            self._found.commands.append(SimpleCommand(tuple(words)))

    def _here_documents(self) -> None:
        documents, self._documents = self._documents, []
        for document in documents:
            body: list[str] = []
            while self._at < len(self._text):
                end = self._find("\n", doubtful=False)
                line = self._text[self._at : end]
                self._at = end + 1
                if (line.lstrip("\t") if document.strips_tabs else line) == document.delimiter:
                    break
                body.append(line)
            if not document.is_quoted:
                _Reader("\n".join(body), self._found, self._depth + 1).read_substitutions()

    def _find(self, wanted: str, start: int | None = None, *, doubtful: bool = True) -> int:
        position = self._text.find(wanted, self._at if start is None else start)
        if position < 0 and wanted != "\n" and doubtful:
            self._found.doubt("a quote is not closed")
        return position if position >= 0 else len(self._text)
