"""Renders docs/offline.md from the tables of the offline command language."""

import json
from collections.abc import Iterator

from docs._generate.markdown import code, note, table
from graph_agent.model.offline.commands import SYNTAX, CommandSyntax
from graph_agent.model.offline.parser import CHINESE, ENGLISH, parse_command
from graph_agent.model.offline.plan import PlannedCall, plan_command

__all__ = ["page"]

_INTRODUCTION = """\
With no model configured, a small fixed command language answers, in English and Chinese. It is no language model
and does not pretend to be one: the first answer and the status line say *offline mode, no model*. What it
understands becomes ordinary tool calls, with the same approvals, ledger and recovery as those of a model; what it
does not understand does nothing, and the answer lists what there is and guesses what was meant.

How to connect a model instead: the [README](../README.md#connect-a-model). A small model from a file leaves to this
language what it reads with certainty: [local.md](local.md).
""".splitlines()
_WRITING = """\
- Several commands are joined by `then`, `and then`, `after that` or 然后, 接着, 最后, also across the languages.
  They run in order; after one that fails or is refused the others do not run, and the answer says so. `run` then
  ends with 1, with 0 where it was you who refused. One part that is not understood spoils the whole message:
  nothing of it is done, and the answer says what would be understood.
- Names with blanks stand between quotes, as do texts that hold a joining word before a command: `"..."`, `'...'`,
  `` `...` ``, “...”, ‘...’, 「...」, 『...』, 《...》. Between straight double quotes `\\n`, `\\t`, `\\"` and
  `\\\\` are read as in most languages; elsewhere a backslash is one, but before a blank in a name.
- A text may have several lines, bare after a colon or between three backquotes; its first indentation stays.
- Texts and searches are literal: no patterns. Paths are relative to the workspace, absolute, or begin with `~`; a
  bare `@` before one, by which Tab completes it in the chat, changes nothing.
- Please, thanks, 请 and 谢谢 change nothing. The answer comes in the language of the message.
""".splitlines()
_TOOLS = frozenset(
    ("ls", "read_file", "glob", "grep", "write_file", "edit_file", "bash", "save_memory", "todo_read")
)


def page() -> str:
    """The whole page, as it should stand on disk."""
    sections = [line for syntax in SYNTAX for line in _section(syntax)]
    return "\n".join(
        [
            note("graph_agent/model/offline/english.py", "graph_agent/model/offline/chinese.py"),
            "# The offline command language",
            "",
            *_INTRODUCTION,
            "",
            "## Writing commands",
            "",
            *_WRITING,
            "",
            "## Commands",
            "",
            "Each example below is run by the tests. The first call of each is shown; appending",
            "reads the file first, and so does writing over a file that was not read before.",
            "",
            *sections,
        ]
    )


def _section(syntax: CommandSyntax) -> list[str]:
    head = f"### {syntax.english} · {syntax.chinese}"
    return [
        head,
        "",
        f"{syntax.description[0].upper()}{syntax.description[1:]}.",
        "",
        *table(("example", "call"), _rows(syntax)),
        "",
    ]


def _rows(syntax: CommandSyntax) -> Iterator[tuple[str, str]]:
    for phrase in (*ENGLISH, *CHINESE):
        for example in phrase.examples:
            command = parse_command(example)
            if command is not None and command.kind == syntax.kind:
                yield code(example.replace("\n", "⏎")), _called(next(plan_command(command, _TOOLS)))


def _called(call: PlannedCall) -> str:
    arguments = {name: value for name, value in call.arguments.items() if value is not True}
    return f"`{call.tool}` {code(json.dumps(arguments, ensure_ascii=False))}"
