"""Renders docs/offline.md from the tables of the offline command language."""

import json
from collections.abc import Iterator

from docs._generate.markdown import code, note, table
from graph_agent.model.offline.parser import CHINESE, ENGLISH, SYNTAX, CommandSyntax, parse_command
from graph_agent.model.offline.plan import PlannedCall, plan_command

__all__ = ["page"]

_INTRODUCTION = """\
If no model is configured, you can use a small fixed command language, in English and Chinese. It is not a language
model and does not pretend to be one: the first answer and the status line say *offline mode, no model*. Commands
become ordinary tool calls, with the same approvals, call log and recovery as those of a model. A message that is
not a command does nothing; the answer lists the commands and suggests the nearest one.

To connect a model instead, see the [README](../README.md#connect-a-model). With a small local model, messages that
are clearly commands of this language still run as such: [local.md](local.md).
""".splitlines()
_WRITING = """\
- Join several commands with `then`, `and then`, `after that` or 然后, 接着, 最后, even across the two languages.
  They run in order. If one fails or is rejected, the rest do not run, and the answer says so; `run` exits with 1,
  or with 0 if you rejected the call yourself. If one part of a message is not understood, nothing in it runs, and
  the answer suggests a correction; `run` exits with 1 then, too.
- Put names with spaces in quotes, and also texts that contain a joining word before a command: `"..."`, `'...'`,
  `` `...` ``, “...”, ‘...’, 「...」, 『...』, 《...》. Between straight double quotes, `\\n`, `\\t`, `\\"` and
  `\\\\` are escapes, as in most languages. Elsewhere a backslash is an ordinary character, except before a space in
  a name.
- After `run`, a sentence that continues (`run make and tell me why it fails`) is not understood. A command with
  such words goes into quotes: `run 'echo salt and pepper'`.
- A text may have several lines, after a colon or between three backquotes; its first indentation is kept.
- Texts and searches are literal, not patterns. Paths are relative to the workspace, absolute, or begin with `~`; an
  `@` before a path, which the chat uses for completion with Tab, is ignored.
- Please, thanks, 请 and 谢谢 are ignored. The answer is in the language of the message.
""".splitlines()
_TOOLS = frozenset(
    ("ls", "read_file", "glob", "grep", "write_file", "edit_file", "bash", "save_memory", "todo_read")
)


def page() -> str:
    """Render the whole page."""
    sections = [line for syntax in SYNTAX for line in _section(syntax)]
    return "\n".join(
        [
            note("graph_agent/model/offline/phrases.py"),
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
            "The tests run each example below. The table shows the first call of each: appending to a file",
            "reads it first, and so does overwriting a file that was not read before.",
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
