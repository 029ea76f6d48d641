import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyte
import pytest

from tests.fakes.openai_server import TCS, TXT, FakeOpenAI
from tests.fakes.pty_program import PtyProgram

_KEYS = "[s]top the turn > "
_MORE = "[m]ore > "
_CTRL_D = "\x04"


def _on_screen(output: str) -> list[str]:
    """What a terminal of the program's width shows of these bytes, every line of it."""
    screen = pyte.Screen(100, 3_000)
    pyte.Stream(screen).feed(output)
    return [line.rstrip() for line in screen.display]


class _Chat:
    """A chat in which the model asks for one call."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        self.workspace = folder / "work"
        self.workspace.mkdir()
        environment = {
            **os.environ,
            "GRAPH_AGENT_HOME": str(folder / "home"),
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": "any",
        }
        self.program = PtyProgram(["-m", "graph_agent", "chat", "go"], self.workspace, environment)

    def leaves(self) -> int:
        self.program.sees("finished")
        self.program.types(_CTRL_D)
        return self.program.ends()


@pytest.fixture
def open_chat(tmp_path: Path) -> Iterator[Callable[[str], _Chat]]:
    with ExitStack() as opened:

        def open_one(command: str) -> _Chat:
            server = FakeOpenAI([TCS(("c1", "bash", {"command": command})), TXT("finished")], strict=True)
            return _Chat(tmp_path, opened.enter_context(server))

        yield open_one


def test_what_hides_or_misleads_stands_on_the_screen_as_an_escape_or_is_told(
    open_chat: Callable[[str], _Chat],
) -> None:
    command = (
        "touch g\u0456t; echo a\u202eb\u200bc\U000e0041d\x1b[2Ke\rf\x07g\u2066h\xadi\u3164j "
        + "x" * 10_000
        + " END"
    )
    chat = open_chat(command)

    chat.program.sees(_KEYS)
    shown = _on_screen(chat.program.output)
    chat.program.enters("n")

    assert chat.leaves() == 0
    whole = "".join(line.strip().removeprefix("│ ") for line in shown)
    assert "a\\u202eb\\u200bc\\U000e0041d\\x1b[2Ke\\rf\\x07g\\u2066h\\xadi\\u3164j" in whole
    assert whole.count("x" * 10_000 + " END") >= 1
    assert "U+0456 CYRILLIC SMALL LETTER" in whole
    assert any("HIGH risk" in line for line in shown)
    assert list(chat.workspace.iterdir()) == []


def test_a_long_command_is_opened_to_its_end_before_yes_counts_and_no_key_is_the_default(
    open_chat: Callable[[str], _Chat],
) -> None:
    chat = open_chat("\n".join(f"echo {number} >> log" for number in range(500)))
    program = chat.program

    program.sees(_MORE)
    for line, told in (
        ("y", "You have not seen all"),
        ("a", "You have not seen all"),
        ("", "Please answer"),
        ("yep", "Please answer"),
    ):
        program.enters(line)
        program.sees(told)
        program.sees(_MORE)
    hidden = "echo 499 >> log" not in "".join(_on_screen(program.output))
    program.enters("m")
    while program.sees_one_of(_MORE, _KEYS + "\x1b") == 0:
        program.enters("m")
    program.enters("y")

    assert chat.leaves() == 0
    shown = "\n".join(_on_screen(program.output))
    assert (hidden, [number for number in range(500) if f"echo {number} >> log" not in shown]) == (True, [])
    assert (chat.workspace / "log").read_text().split() == [str(number) for number in range(500)]
