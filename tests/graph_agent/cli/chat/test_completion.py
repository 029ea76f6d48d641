import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory

from graph_agent.cli.chat.command_table import COMMANDS, MODES
from graph_agent.cli.chat.completion import ChatCompleter, TypedHistory
from graph_agent.events import EventBus, SessionOpened
from tests.fakes.database_rows import Rows


class _Typing:
    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.offers = ChatCompleter(self.workspace, folder / "a.db")

    def offered(self, text: str) -> list[str]:
        """The line as each offer would make it."""
        found = self.offers.get_completions(Document(text), CompleteEvent(completion_requested=True))
        return [text[: len(text) + one.start_position] + one.text for one in found]


@pytest.fixture
def typing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Typing:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    return _Typing(tmp_path)


def test_every_command_is_offered_and_those_of_ones_own_after_them(typing: _Typing, tmp_path: Path) -> None:
    (tmp_path / "home" / "commands").mkdir(parents=True)
    (tmp_path / "home" / "commands" / "review.md").write_text("Read it.")

    assert typing.offered("/") == [*(f"/{name}" for name in COMMANDS), "/review"]
    # What begins with the letters comes first; then what has them in this order.
    beginning = [*(f"/{name}" for name in COMMANDS if name.startswith("re")), "/review"]
    offered = typing.offered("/re")
    assert [name for name in offered if name.startswith("/re")] == beginning
    assert all(re.search("r.*e", name) for name in offered)
    assert typing.offered("/0") == typing.offered("say /h") == typing.offered("/a\n/h") == []


def test_an_offer_says_what_the_command_does_and_shows_no_foreign_escape(typing: _Typing, tmp_path: Path) -> None:
    (tmp_path / "home" / "commands").mkdir(parents=True)
    (tmp_path / "home" / "commands" / "zap.md").write_text("---\nargument-hint: IT\n---\nRed \x1b[31m")

    [one] = typing.offers.get_completions(Document("/zap"), CompleteEvent())

    assert (one.display_text, one.display_meta_text) == ("/zap", "Red \\x1b[31m")


def test_modes_threads_checkpoints_and_grants_are_offered_behind_their_commands(
    typing: _Typing, tmp_path: Path
) -> None:
    rows = Rows(tmp_path / "a.db")
    rows.thread("thread-one", turns=1)
    rows.grant("bash(ls)")
    rows.close()

    assert typing.offered("/mode ") == [f"/mode {mode}" for mode in MODES]
    assert typing.offered("/mode p")[0] == "/mode plan"
    assert typing.offered("/resume th") == ["/resume thread-one"]
    assert typing.offered("/policy revoke ") == ["/policy revoke 1"]
    assert typing.offered("/policy ") == typing.offered("/rewind ") == typing.offered("/help ") == []


def test_files_are_offered_behind_an_at_wherever_it_stands(typing: _Typing) -> None:
    (typing.workspace / "src").mkdir()
    (typing.workspace / "src" / "main.py").touch()
    (typing.workspace / "a b.txt").touch()
    (typing.workspace / "bad\x1b.txt").touch()

    assert typing.offered("see @ma") == ["see @src/main.py"]
    assert typing.offered("@src/") == ["@src/main.py"]
    assert typing.offered("(@a") == ['(@"a b.txt"', "(@src/main.py"]
    assert typing.offered('@"a b') == ['@"a b.txt"']
    assert typing.offered("/review @ma") == ["/review @src/main.py"]
    assert typing.offered("me@ma") == typing.offered("@bad") == []


def test_another_thread_brings_its_own_folder(typing: _Typing, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "there.py").touch()
    bus = EventBus()
    bus.subscribe(typing.offers)

    bus.publish(SessionOpened("t", "", str(tmp_path / "other"), "model", "default"))

    assert typing.offered("@th") == ["@there.py"]


def test_a_database_that_cannot_be_read_offers_nothing(typing: _Typing, tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database")

    assert typing.offered("/resume ") == []


def test_the_history_is_read_newest_first_and_by_other_readers_of_its_format(tmp_path: Path) -> None:
    history = TypedHistory(tmp_path / "history")

    for text in ("one", "+two\n\n#three", "four \udcff"):
        history.store_string(text)

    kept = ["four ?", "+two\n\n#three", "one"]
    assert list(history.load_history_strings()) == kept
    assert list(FileHistory(tmp_path / "history").load_history_strings()) == kept


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_anything_but_a_plain_file_is_neither_read_nor_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "history")
    history = TypedHistory(tmp_path / "history")

    history.store_string("lost")

    assert list(history.load_history_strings()) == []


def test_the_end_of_a_large_history_is_read_and_garbage_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b"\n# then\n" + b"+old line\n" * 300_000 + b"\xff\x00garbage\n")
    history = TypedHistory(file)

    history.store_string("new")

    assert list(history.load_history_strings()) == ["new"]
