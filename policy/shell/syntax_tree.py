"""From the syntax tree of a shell text to its simple commands, what they write, and what makes the text unclear.

The walk goes through the whole tree, also through kinds of nodes it has never heard of, which only make the text
unclear: so every command is found wherever it is nested.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count, dropwhile
from posixpath import basename
from typing import Any, NamedTuple

from policy.shell.commands import changes_folder
from policy.shell.program_table import program_named
from policy.shell.words import (
    Node,
    Position,
    SimpleCommand,
    Word,
    expansion_reason,
    holds_code,
    read_word,
    unescaped,
)

__all__ = ["TreeContent", "echoed_text", "walk_tree"]

_PLAIN_KINDS = frozenset(
    (
        "File", "CallExpr", "DeclClause", "BinaryCmd", "Subshell", "Block", "IfClause", "WhileClause", "CaseClause",
        "TimeClause", "Lit", "SglQuoted", "DblQuoted", "Word",
    )
)  # fmt: skip
_WORD_PARTS = frozenset(("CmdSubst", "ProcSubst", "ParamExp", "ArithmExp", "ExtGlob", "BraceExp"))
"""Kinds whose reason is that of the word they are part of."""
_REASONS = {
    "ForClause": "it runs a for loop",
    "SelectClause": "it runs a select loop",
    "FuncDecl": "it defines a function",
    "CoprocClause": "it starts a coprocess",
    "TestClause": "it tests a condition with [[ ]]",
    "LetClause": "it computes with let",
    "ArithmCmd": "it computes with (( ))",
}
"""Why other kinds make a text unclear; kinds within them come after them."""
_OWN_SHELL = frozenset(("Subshell", "CmdSubst", "ProcSubst", "CoprocClause"))
_REPEATING = frozenset(("WhileClause", "ForClause", "FuncDecl"))
_PIPES = ("|", "|&")
_MAX_RESULTS = 64
"""How many statements are looked at for what is known after them."""
_NUMBER_OR_CLOSE = re.compile(r"\d+|-")
_PLAIN_DELIMITER = re.compile(r"\w+")
_NETWORK = ("/dev/tcp/", "/dev/udp/")


@dataclass
class TreeContent:
    """What a walk through a tree collects."""

    commands: list[SimpleCommand] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    """Targets of write redirections, as far as they are known."""
    commands_before: list[int] = field(default_factory=list)
    """For each of them how many commands are run before it is opened, also of those that only may be."""
    read: list[str] = field(default_factory=list)
    """Files that redirections read."""
    named: list[str] = field(default_factory=list)
    """Words beside commands that may name what they work on: of loops, arrays and tests."""
    moves: list[str | None] = field(default_factory=list)
    """Folders that `cd` goes to; None where that is not known."""
    unclear_reason: str = ""

    def doubt(self, reason: str) -> None:
        """Note why the text is unclear, if there is a reason; the first one is kept."""
        self.unclear_reason = self.unclear_reason or reason


def walk_tree(tree: Node, source: bytes) -> TreeContent:
    """Everything in a tree; `source` is the text it was made from."""
    walker = _Walker(source)
    walker.visit(tree)
    return walker.content


class _Visit(NamedTuple):
    """A node that is still to be visited."""

    node: Any
    stdin: str = ""
    """Its input, as far as the text contains it."""
    shell: tuple[int | str, ...] = ()
    """The shell it runs in; see `SimpleCommand.shell`."""
    is_piped: bool = False
    """Whether its input comes from a pipe."""
    position: Position = Position()
    """Of its commands; the offset is not set."""


class _Walker:
    def __init__(self, source: bytes) -> None:
        self._source = source
        self.content = TreeContent()
        self._repeats = False
        self._shell_numbers = count(1)
        self._shell: tuple[int | str, ...] = ()
        self._is_piped = False
        self._position = Position()

    def visit(self, tree: Node) -> None:
        """Node by node, each before its children; not recursive, as a list of many commands is a deep tree."""
        waiting: list[_Visit] = [_Visit(tree)]
        while waiting:
            node, stdin, self._shell, self._is_piped, self._position = waiting.pop()
            if isinstance(node, list):
                waiting += [
                    _Visit(item, "", self._shell, self._is_piped, self._position) for item in reversed(node)
                ]
            elif isinstance(node, dict) and "Line" not in node:
                # Nodes with a line are positions in the text, which outnumber all others.
                waiting += reversed(self._visit_node(node, stdin))

    def _visit_node(self, node: Node, stdin: str) -> list[_Visit]:
        """Note what the node is; returns its children."""
        kind = node.get("Type")
        if kind is not None and kind not in _PLAIN_KINDS:
            shown = "SelectClause" if node.get("Select") else kind
            known = expansion_reason(kind) if kind in _WORD_PARTS else _REASONS.get(shown)
            self.content.doubt(known or "it uses a part of the shell's language that is not examined")
        self._repeats = self._repeats or kind in _REPEATING
        match kind:
            case "CallExpr":
                self._visit_call(node, stdin)
            case "DeclClause":
                # `export NAME` and options come as assignments without a value, "naked" ones.
                words = map(self._assignment, node.get("Args") or ())
                self._add_command(node, [], [Word(node["Variant"]["Value"]), *words], "")
            case "CaseClause":
                # The words of a `case` are compared and not run, but an expansion in one may run something.
                for item in (node["Word"], *(one for arm in node.get("Items") or () for one in arm["Patterns"])):
                    self.content.doubt(self._word(item).unclear_reason)
            case "TimeClause":
                self.content.commands.append(SimpleCommand(("time",), shell=self._shell, position=self._position))
            case "WordIter":
                self.content.named += [text for one in node.get("Items") or () for text in self._word(one).expanded]
            case "Word":
                self._visit_lone_word(self._word(node).text)
            case _:
                pass
        redirections = node.get("Redirs") or ()
        stdin = self._visit_redirections(redirections) or stdin
        self._is_piped = self._is_piped or any(map(_copies_input, redirections))
        piped = self._piped_text(node)
        inputs = {"Y": piped, "Cmd": stdin}
        is_pipe = node.get("Op") in _PIPES
        return [
            _Visit(
                value,
                inputs.get(name, ""),
                self._shell_of(node, name),
                self._is_piped or (is_pipe and name == "Y"),
                self._position_of(node, name),
            )
            for name, value in node.items()
        ]

    def _shell_of(self, node: Node, name: str) -> tuple[int | str, ...]:
        """The shell, or function, that runs a child: parts of a pipeline and background commands have their own."""
        if node.get("Type") == "FuncDecl" and name == "Body":
            return (*self._shell, (node.get("Name") or {}).get("Value", ""))
        is_piped = node.get("Op") in _PIPES and name in ("X", "Y")
        is_separate = node.get("Type") in _OWN_SHELL or (node.get("Background") and name == "Cmd")
        return (*self._shell, next(self._shell_numbers)) if is_piped or is_separate else self._shell

    def _position_of(self, node: Node, name: str) -> Position:
        """The position of a child: what it requires, and whether it is run once and in turn."""
        position, kind, operator = self._position, node.get("Type"), node.get("Op")
        if operator in ("&&", "||") and name == "Y":
            known = self._known_results(node["X"], has_succeeded=operator == "&&")
            return position._replace(requires=position.requires | known)
        if kind == "IfClause" and name in ("Then", "Else") and node.get("Cond"):
            known = self._known_results(
                {"Cmd": {"Type": "Block", "Stmts": node["Cond"]}}, has_succeeded=name == "Then"
            )
            return position._replace(requires=position.requires | known)
        repeats = position.repeats or kind in _REPEATING
        overlaps = repeats or operator in _PIPES or bool(node.get("Background")) or kind == "CoprocClause"
        return position._replace(repeats=repeats, overlaps=position.overlaps or overlaps)

    def _known_results(self, statement: Node, *, has_succeeded: bool) -> frozenset[tuple[int, bool]]:
        """Which changes of folder have succeeded or failed, by their offset, if a statement has done so."""
        found: set[tuple[int, bool]] = set()
        waiting = [(statement, has_succeeded)]
        for _ in range(_MAX_RESULTS):
            if not waiting:
                break
            one, result = waiting.pop()
            result ^= bool(one.get("Negated"))
            command = {} if one.get("Background") else one.get("Cmd") or {}
            match command.get("Type"), command.get("Op"):
                case "CallExpr", _:
                    words = tuple(self._word(item).text for item in command.get("Args") or ())
                    if changes_folder(words):
                        found.add((_offset(command), result))
                case "BinaryCmd", ("&&" | "||") as operator if result == (operator == "&&"):
                    waiting += [(command["X"], result), (command["Y"], result)]
                case "Block", _:
                    waiting += [(each, result) for each in (command.get("Stmts") or ())[-1:]]
                case _:
                    pass
        return frozenset(found)

    def _word(self, node: Node) -> Word:
        return read_word(node, self._source)

    def _visit_call(self, node: Node, stdin: str) -> None:
        assigned = [self._assignment(item) for item in node.get("Assigns") or ()]
        words = [self._word(item) for item in node.get("Args") or ()]
        if words and words[0].is_pattern:
            self.content.doubt("a pattern stands for the program's name")
        self._add_command(node, assigned, words, stdin + self._process_substitution_text(node))
        if words and basename(words[0].text) in ("cd", "pushd", "popd"):
            self.content.moves.append(None if assigned else self._folder(words))

    def _visit_lone_word(self, text: str) -> None:
        """A word outside of a command, which is one of `[[ … ]]`, or of arithmetic."""
        self.content.named.append(text)
        if holds_code(text):
            self.content.commands.append(SimpleCommand(("test", text), shell=self._shell))

    def _assignment(self, node: Node) -> Word:
        name = (node.get("Name") or {}).get("Value", "")
        value = read_word(node["Value"], self._source, is_value=True) if node.get("Value") else Word("")
        if node.get("Index") or node.get("Array"):
            self.content.doubt("it assigns to an array")
            elements = (node.get("Array") or {}).get("Elems") or ()
            self.content.named += [self._word(one["Value"]).text for one in elements if one.get("Value")]
        if node.get("Naked"):
            return Word(name + value.text, value.unclear_reason)
        return Word(f"{name}{'+' if node.get('Append') else ''}={value.text}", value.unclear_reason)

    def _add_command(self, node: Node, assigned: list[Word], words: list[Word], stdin: str) -> None:
        every = (*assigned, *words)
        for word in every:
            self.content.doubt(word.unclear_reason)
        evaluates_index = bool(words) and program_named(words[0].text).code == "index"
        if evaluates_index and any(holds_code(word.text) for word in words[1:]):
            self.content.doubt(f"{words[0].text} may run code in an index")
        if any(word.text.startswith("CDPATH") for word in every):
            # It sends every later `cd` elsewhere.
            self.content.moves.append(None)
        expanded = [(text, word) for word in every for text in word.expanded]
        if expanded:
            patterns = frozenset(at for at, (_, word) in enumerate(expanded) if word.is_pattern)
            computed = frozenset(at for at, (_, word) in enumerate(expanded) if word.unclear_reason)
            self.content.commands.append(
                SimpleCommand(
                    tuple(text for text, _ in expanded),
                    stdin,
                    patterns,
                    self._shell,
                    computed=computed | patterns,
                    is_piped=self._is_piped,
                    position=self._position._replace(offset=_offset(node)),
                )
            )

    def _folder(self, words: list[Word]) -> str | None:
        """Where a change of folder leads; None unless its text tells."""
        if len(words) != 2 or words[0].text != "cd" or self._repeats:
            return None
        target = words[1]
        is_odd = target.unclear_reason or target.is_pattern or target.text.startswith("-")
        return None if is_odd or not target.text or ".." in target.text.split("/") else target.text

    def _visit_redirections(self, redirections: Iterable[Node]) -> str:
        """Note the files; returns the text that they feed to the command."""
        stdin = ""
        for item in redirections:
            if (item.get("N") or {}).get("Value", "1").startswith("{"):
                self.content.doubt("a redirection sets a variable")
            target = self._word(item["Word"])
            if target.unclear_reason or target.is_pattern:
                self.content.doubt("the target of a redirection is not known before it runs")
            if target.text.startswith(_NETWORK):
                self.content.doubt("a redirection opens a connection")
            self._visit_redirection(item, target)
            stdin += self._inline_input(item)
        return stdin

    def _visit_redirection(self, item: Node, target: Word) -> None:
        match item["Op"]:
            case "<<" | "<<-":
                if not _PLAIN_DELIMITER.fullmatch(target.text):
                    self.content.doubt("a here-document has an odd delimiter")
            case "<<<":
                pass
            case "<":
                self.content.read.append(target.text)
            case ">&" | "<&" if _is_descriptor(item["Word"]):
                pass
            case operator:
                if operator in (">&", "<&"):
                    # Bash expands the word after it a second time unless it is a number.
                    self.content.doubt(f"a file follows {operator}")
                if target.text != "/dev/null":
                    self.content.written.append(target.text)
                    overlaps = self._position.overlaps
                    self.content.commands_before.append(sys.maxsize if overlaps else len(self.content.commands))

    def _piped_text(self, node: Node) -> str:
        """What flows through a pipe, as far as the text contains it."""
        texts: list[str] = []
        while node.get("Type") == "BinaryCmd" and node.get("Op") in _PIPES:
            left = node["X"]
            texts.append(self._written_text(left))
            node = left.get("Cmd") or {}
        return "".join(texts)

    def _written_text(self, statement: Node) -> str:
        """What a statement writes, as far as the text contains it."""
        words = [self._word(item).text for item in (statement.get("Cmd") or {}).get("Args") or ()]
        return "".join((*map(self._inline_input, statement.get("Redirs") or ()), echoed_text(words)))

    def _process_substitution_text(self, node: Node) -> str:
        """What the files `<(…)` of a command hold."""
        words = [*(node.get("Args") or ()), *(one.get("Value") or {} for one in node.get("Assigns") or ())]
        parts = (part for word in words for part in word.get("Parts") or () if part.get("Type") == "ProcSubst")
        statements = [one for part in parts for one in part.get("Stmts") or ()]
        return "\n".join(self._written_text(one) + self._piped_text(one.get("Cmd") or {}) for one in statements)

    def _inline_input(self, redirection: Node) -> str:
        """The text of a here-document or here-string."""
        match redirection["Op"]:
            case "<<" | "<<-":
                # Escapes stay, as nothing takes them for anything but themselves.
                parts = (redirection.get("Hdoc") or {}).get("Parts") or ()
                return "".join(
                    part["Value"] if part.get("Type") == "Lit" else self._word({"Parts": [part]}).text
                    for part in parts
                )
            case "<<<":
                return self._word(redirection["Word"]).text
            case _:
                return ""


def _copies_input(redirection: Node) -> bool:
    """Whether the input comes from another descriptor, which an earlier command may have opened: `<&3`."""
    number = (redirection.get("N") or {}).get("Value", "0")
    return redirection["Op"] == "<&" and number == "0" and _is_descriptor(redirection["Word"])


def _offset(node: Node) -> int:
    return int(node.get("Pos", {}).get("Offset", 0))


def _is_descriptor(word: Node) -> bool:
    parts = list(word.get("Parts") or ())
    return len(parts) == 1 and parts[0].get("Type") == "Lit" and bool(_NUMBER_OR_CLOSE.fullmatch(parts[0]["Value"]))


_ECHO_OPTION = re.compile("-[neE]+")
_FORMAT_FIELD = re.compile(r"%(%|[-+ #0-9.*]*[a-zA-Z])")
_MAX_FORMAT_USES = 64


def echoed_text(words: Sequence[str]) -> str:
    """What `echo` or `printf` writes, with its escapes and without; empty for other programs."""
    program = basename(words[0]) if words else ""
    if program == "echo":
        text = " ".join(dropwhile(_ECHO_OPTION.fullmatch, words[1:]))
    elif program == "printf" and len(words) > 1:
        text = _formatted(words[1], list(words[2:]))
    else:
        return ""
    plain = unescaped(text)
    return text if plain == text else f"{text}\n{plain}"


def _formatted(template: str, values: list[str]) -> str:
    if not values or not _FORMAT_FIELD.search(template):
        return template
    waiting = iter(values)
    # A format is used again until no value is left.
    fields = sum(found != "%" for found in _FORMAT_FIELD.findall(template)) or len(values)
    uses = min(-(-len(values) // fields), _MAX_FORMAT_USES)
    return _FORMAT_FIELD.sub(lambda found: "%" if found[1] == "%" else next(waiting, ""), template * uses)
