"""From the syntax tree of a shell text to the simple commands in it, what they write, and what makes it unclear.

Knows the tree that shfmt prints as JSON, starts no parser, and looks at no file. Every command is found wherever it
is nested: the walk goes through the whole tree, also through kinds of nodes it has never heard of; those only make
the text unclear.

What `echo` and `printf` write, as far as their words tell: it may be fed to a shell.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, dropwhile
from posixpath import basename
from typing import Any

from policy.shell.options import EVALUATING
from policy.shell.words import SimpleCommand, Word, holds_code, read_word, unescaped

__all__ = ["Found", "said", "walk"]

_ECHO_OPTION = re.compile("-[neE]+")
_FIELD = re.compile(r"%(%|[-+ #0-9.*]*[a-zA-Z])")

_MOST_USES = 64


def said(words: Sequence[str]) -> str:
    """The text a command writes, with its escapes and without; empty for other programs."""
    program = basename(words[0]) if words else ""
    if program == "echo":
        text = " ".join(dropwhile(_ECHO_OPTION.fullmatch, words[1:]))
    elif program == "printf" and len(words) > 1:
        text = _formatted(words[1], list(words[2:]))
    else:
        return ""
    plain = unescaped(text)
    return text if plain == text else f"{text}\n{plain}"


def _formatted(pattern: str, values: list[str]) -> str:
    if not values or not _FIELD.search(pattern):
        return pattern
    waiting = iter(values)
    # A format is used again until no value is left.
    uses = -(-len(values) // (sum(field != "%" for field in _FIELD.findall(pattern)) or len(values)))
    return _FIELD.sub(lambda field: "%" if field[1] == "%" else next(waiting, ""), pattern * min(uses, _MOST_USES))


Node = Mapping[str, Any]

_PLAIN_KINDS = frozenset(
    (
        "File", "CallExpr", "DeclClause", "BinaryCmd", "Subshell", "Block", "IfClause", "WhileClause", "CaseClause",
        "TimeClause", "Lit", "SglQuoted", "DblQuoted", "Word",
    )
)  # fmt: skip
_OF_WORDS = frozenset(("CmdSubst", "ProcSubst", "ParamExp", "ArithmExp", "ExtGlob", "BraceExp"))
"""Kinds whose doubt the words they stand in tell better."""
_OWN_SHELL = frozenset(("Subshell", "CmdSubst", "ProcSubst", "CoprocClause"))
_REPEATING = frozenset(("WhileClause", "ForClause", "FuncDecl"))
_NUMBER_OR_CLOSE = re.compile(r"\d+|-")
_PLAIN_DELIMITER = re.compile(r"\w+")
_NETWORK = ("/dev/tcp/", "/dev/udp/")


@dataclass
class Found:
    """What a walk found."""

    commands: list[SimpleCommand] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    """Targets of write redirections, as far as they are known."""
    read: list[str] = field(default_factory=list)
    """Files that redirections read."""
    moves: list[str | None] = field(default_factory=list)
    """Folders that `cd` goes to; None where that is not known."""
    not_plain: str = ""

    def doubt(self, why: str) -> None:
        """Note why the text is unclear; the first reason is kept."""
        self.not_plain = self.not_plain or why


def walk(tree: Node, source: bytes) -> Found:
    """Everything in a tree; `source` is the text it was made from."""
    walker = _Walker(source)
    walker.visit(tree)
    return walker.found


class _Walker:
    def __init__(self, source: bytes) -> None:
        self._source = source
        self.found = Found()
        self._repeats = False
        self._shells = count(1)
        self._shell: tuple[int | str, ...] = ()

    def visit(self, tree: Node) -> None:
        """Node by node, each before what it holds: a list of many commands is a tree as deep as it is long."""
        waiting: list[tuple[Any, str, tuple[int | str, ...]]] = [(tree, "", ())]
        while waiting:
            node, stdin, self._shell = waiting.pop()
            if isinstance(node, list):
                waiting += [(item, "", self._shell) for item in reversed(node)]
            elif isinstance(node, dict) and "Line" not in node:
                # What has a line is a place in the text, of which there are more than of all else.
                waiting += reversed(self._visit_node(node, stdin))

    def _visit_node(self, node: Node, stdin: str) -> list[tuple[Any, str, tuple[int | str, ...]]]:
        """Note what the node is; returns what it holds, each with what that is fed, and the shell it runs in."""
        kind = node.get("Type")
        if kind is not None and kind not in _PLAIN_KINDS:
            self.found.doubt(_why_not(kind))
        self._repeats = self._repeats or kind in _REPEATING
        match kind:
            case "CallExpr":
                self._call(node, stdin)
            case "DeclClause":
                self._declaration(node)
            case "CaseClause":
                self._choice(node)
            case "TimeClause":
                self.found.commands.append(SimpleCommand(("time",), shell=self._shell))
            case "Word" if holds_code(text := read_word(node, self._source).text):
                # A word by itself is one of `[[ … ]]`, or of arithmetic.
                self.found.commands.append(SimpleCommand(("test", text), shell=self._shell))
            case _:
                pass
        fed = self._redirected(node.get("Redirs") or ()) or stdin
        piped = self._said(node)
        return [
            (value, piped if name == "Y" and piped else fed if name == "Cmd" else "", self._shell_of(node, name))
            for name, value in node.items()
        ]

    def _shell_of(self, node: Node, name: str) -> tuple[int | str, ...]:
        """Which shell runs a part, or function: those of a pipeline, and what is not waited for, have their own."""
        if node.get("Type") == "FuncDecl" and name == "Body":
            return (*self._shell, (node.get("Name") or {}).get("Value", ""))
        is_piped = node.get("Op") in ("|", "|&") and name in ("X", "Y")
        is_apart = node.get("Type") in _OWN_SHELL or (node.get("Background") and name == "Cmd")
        return (*self._shell, next(self._shells)) if is_piped or is_apart else self._shell

    def _call(self, node: Node, stdin: str) -> None:
        assigned = [self._assignment(item) for item in node.get("Assigns") or ()]
        words = [read_word(item, self._source) for item in node.get("Args") or ()]
        if words and words[0].is_pattern:
            self.found.doubt("a pattern stands for the program's name")
        self._add(assigned, words, stdin + self._in_substitutions(node))
        if words and basename(words[0].text) in ("cd", "pushd", "popd"):
            self.found.moves.append(None if assigned else self._folder(words))

    def _choice(self, node: Node) -> None:
        """The words of a `case` are compared and not run; an expansion in one may run something all the same."""
        for item in (node["Word"], *(one for arm in node.get("Items") or () for one in arm["Patterns"])):
            if why := read_word(item, self._source).doubt:
                self.found.doubt(why)

    def _declaration(self, node: Node) -> None:
        words = [Word(node["Variant"]["Value"])]
        # `export NAME` and options come as assignments without a value, "naked" ones.
        words += map(self._assignment, node.get("Args") or ())
        self._add([], words, "")

    def _add(self, assigned: list[Word], words: list[Word], stdin: str) -> None:
        every = (*assigned, *words)
        for word in every:
            if word.doubt:
                self.found.doubt(word.doubt)
        if words and words[0].text in EVALUATING and any(holds_code(word.text) for word in words[1:]):
            self.found.doubt(f"{words[0].text} may run what stands in an index")
        if any(word.text.startswith("CDPATH") for word in every):
            # It sends every later `cd` elsewhere.
            self.found.moves.append(None)
        becoming = [(text, word.is_pattern) for word in every for text in word.becoming]
        patterns = frozenset(at for at, (_, is_pattern) in enumerate(becoming) if is_pattern)
        if becoming:
            texts = tuple(text for text, _ in becoming)
            self.found.commands.append(SimpleCommand(texts, stdin, patterns, self._shell))

    def _assignment(self, node: Node) -> Word:
        name = (node.get("Name") or {}).get("Value", "")
        value = read_word(node["Value"], self._source, is_value=True) if node.get("Value") else Word("")
        if node.get("Index") or node.get("Array"):
            self.found.doubt("it assigns to an array")
        if node.get("Naked"):
            return Word(name + value.text, value.doubt)
        return Word(f"{name}{'+' if node.get('Append') else ''}={value.text}", value.doubt)

    def _folder(self, words: list[Word]) -> str | None:
        """Where a change of folder leads; None unless that can be told from its text."""
        if len(words) != 2 or words[0].text != "cd" or self._repeats:
            return None
        target = words[1]
        is_odd = target.doubt or target.is_pattern or target.text.startswith("-") or ".." in target.text.split("/")
        return None if is_odd or not target.text else target.text

    def _redirected(self, redirections: Iterable[Node]) -> str:
        """Note the files; returns the text that is fed."""
        fed = ""
        for item in redirections:
            if (item.get("N") or {}).get("Value", "1").startswith("{"):
                self.found.doubt("a redirection sets a variable")
            target = read_word(item["Word"], self._source)
            if target.doubt or target.is_pattern:
                self.found.doubt("the target of a redirection is not known before it runs")
            if target.text.startswith(_NETWORK):
                self.found.doubt("a redirection opens a connection")
            self._one_redirection(item, target)
            fed += self._fed(item)
        return fed

    def _one_redirection(self, item: Node, target: Word) -> None:
        match item["Op"]:
            case "<<" | "<<-":
                if not _PLAIN_DELIMITER.fullmatch(target.text):
                    self.found.doubt("a here-document has an odd delimiter")
            case "<<<":
                pass
            case "<":
                self.found.read.append(target.text)
            case ">&" | "<&" if _is_descriptor(item["Word"]):
                pass
            case operator:
                if operator in (">&", "<&"):
                    # Bash expands the word after it a second time unless it is a number.
                    self.found.doubt(f"a file stands after {operator}")
                if target.text != "/dev/null":
                    self.found.written.append(target.text)

    def _said(self, node: Node) -> str:
        """What flows through a pipe, as far as that stands in the text: what is echoed, and what is fed."""
        told: list[str] = []
        while node.get("Type") == "BinaryCmd" and node.get("Op") in ("|", "|&"):
            left = node["X"]
            told.append(self._told_by(left))
            node = left.get("Cmd") or {}
        return "".join(told)

    def _told_by(self, statement: Node) -> str:
        """What a statement writes, as far as that stands in the text."""
        words = [read_word(item, self._source).text for item in (statement.get("Cmd") or {}).get("Args") or ()]
        return "".join((*map(self._fed, statement.get("Redirs") or ()), said(words)))

    def _in_substitutions(self, node: Node) -> str:
        """What the files `<(…)` of a command hold."""
        words = [*(node.get("Args") or ()), *(one.get("Value") or {} for one in node.get("Assigns") or ())]
        parts = (part for word in words for part in word.get("Parts") or () if part.get("Type") == "ProcSubst")
        statements = [one for part in parts for one in part.get("Stmts") or ()]
        return "\n".join(self._told_by(one) + self._said(one.get("Cmd") or {}) for one in statements)

    def _fed(self, redirection: Node) -> str:
        """The text of a here-document or here-string."""
        match redirection["Op"]:
            case "<<" | "<<-":
                return _document(redirection.get("Hdoc") or {}, self._source)
            case "<<<":
                return read_word(redirection["Word"], self._source).text
            case _:
                return ""


def _document(node: Node, source: bytes) -> str:
    """The text of a here-document; escapes stay, as nobody takes them for anything but themselves."""
    parts = node.get("Parts") or ()
    return "".join(part["Value"] if part.get("Type") == "Lit" else _alone(part, source) for part in parts)


def _alone(part: Node, source: bytes) -> str:
    return read_word({"Parts": [part]}, source).text


def _is_descriptor(word: Node) -> bool:
    parts = list(word.get("Parts") or ())
    return len(parts) == 1 and parts[0].get("Type") == "Lit" and bool(_NUMBER_OR_CLOSE.fullmatch(parts[0]["Value"]))


def _why_not(kind: str) -> str:
    if kind in ("CmdSubst", "ProcSubst"):
        return "it substitutes a command"
    if kind in _OF_WORDS:
        return "the shell would expand a '$'" if kind != "ExtGlob" else "it uses an extended pattern"
    return f"it uses the shell's {kind}"
