import os
import pty
from collections.abc import Iterator

import pytest
from prompt_toolkit.keys import Keys

from graph_agent.cli.prompts.keys import line_of
from graph_agent.cli.prompts.terminal import Keyboard


@pytest.fixture
def line() -> Iterator[tuple[int, Keyboard]]:
    person, program = pty.openpty()
    with os.fdopen(program, encoding="utf-8") as source:
        yield person, Keyboard(source)
    os.close(person)


def test_what_no_fingers_type_is_one_paste_but_for_what_may_belong_to_the_keys_beside_it(
    line: tuple[int, Keyboard],
) -> None:
    person, keyboard = line
    text = "é" + "0123456789" * 10 + "\\"

    with keyboard.raw_mode():
        os.write(person, f"\x1b{text}\rnext\r".encode())
        keys = keyboard.read_keys()

    assert [press.key for press in keys] == [
        Keys.Escape, "é", Keys.BracketedPaste, "\\", Keys.Enter, *"next", Keys.Enter
    ]  # fmt: skip
    assert line_of(keys) == f"{text}next"
