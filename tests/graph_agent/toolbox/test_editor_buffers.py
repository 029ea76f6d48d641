from collections.abc import Callable
from pathlib import Path

import pytest

from graph_agent.toolbox import editor_buffers
from graph_agent.toolbox.editor_buffers import UnsavedText

_PATH = Path("/w/a.txt")


def _editor(shown: Callable[[int], str | None]) -> UnsavedText:
    """An editor that shows this when it is asked for the n-th time."""
    asked = 0

    async def read_buffer(path: Path) -> str | None:
        nonlocal asked
        assert path == _PATH
        asked += 1
        return shown(asked)

    return UnsavedText(read_buffer)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editor_buffers, "_LOOK_AGAIN_S", 0.0)


@pytest.mark.parametrize(
    ("on_disk", "buffer", "unsaved"),
    [
        (b"a\nb\n", "a\nb\n", None),
        (b"a\r\nb\r\n", "a\nb\n", None),
        (b"a\nb\n", "a\nb", None),
        (b"\xef\xbb\xbfa\n", "\ufeffa\n", None),
        (b"\xef\xbb\xbfa\n", "a\n", None),
        (b"", "", None),
        (None, "", None),
        (b"a\nb\n", "a\nc", b"a\nc\n"),
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a", "b", b"b"),
        (b"\xef\xbb\xbfa\n", "\ufeffb\n", b"\xef\xbb\xbfb\n"),
        (b"a\n", "\ud800", b"?\n"),
        (b"a\n", "", b""),
        (None, "new", b"new\n"),
        (b"\xc4\xe3\xba\xc3\xca\xc0\xbd\xe7", "other", None),
        (b"\x00\x01\x02", "other", None),
        (b"a\n", None, None),
    ],
)
async def test_text_is_unsaved_if_saving_it_would_change_the_file(
    on_disk: bytes | None, buffer: str | None, unsaved: bytes | None
) -> None:
    assert await _editor(lambda _: buffer).unsaved(_PATH, on_disk) == unsaved


async def test_an_editor_gets_time_to_reload_a_file() -> None:
    assert await _editor(lambda number: "old" if number < 3 else "new").unsaved(_PATH, b"new") is None
    assert await _editor(lambda _: "old").unsaved(_PATH, b"new") == b"old"


async def test_text_that_the_file_held_before_is_not_unsaved() -> None:
    editor = _editor(lambda number: "typed" if number > 2 else "one")

    assert await editor.unsaved(_PATH, b"one\n") is None
    assert await editor.unsaved(_PATH, b"two\n") is None
    assert await editor.unsaved(_PATH, b"two\n") == b"typed\n"
