"""Menus in real terminals: the messages to rewind to, and the threads to resume."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graph_agent.cli.prompts.menu import Menu, Picked, Row, format_rows
from graph_agent.cli.views.time_travel import find_rewind_points
from tests.fakes.openai_server import TC, TXT
from tests.fakes.pty_program import PtyProgram
from tests.scenarios.command import Scripted, scripted

_CTRL_D, _UP, _DOWN, _ESC = "\x04", "\x1b[A", "\x1b[B", "\x1b"


def _write(number: int) -> dict[str, str]:
    return {"file_path": "total.py", "content": f"total = {number}\n"}


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Scripted]:
    """Two turns that write, and one that answers."""
    replies = [
        TC("c1", "write_file", _write(1)),
        TXT("one"),
        TC("c2", "write_file", _write(2)),
        TXT("two"),
        TXT("3"),
    ]
    with scripted(tmp_path, replies) as command:
        for text in ("write one", "make it two", "explain it"):
            command("run", text, "--thread", "shop", "--mode", "acceptEdits")
        yield command


def _program(command: Scripted, *arguments: str, size: tuple[int, int] = (80, 24)) -> PtyProgram:
    return PtyProgram(["-m", "graph_agent", *arguments], command.workspace, command.env, size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 24), (80, 24), (120, 24)])
def test_the_chat_goes_back_to_before_a_message_and_offers_its_words_again(
    command: Scripted, size: tuple[int, int]
) -> None:
    chat = _program(command, "resume", "shop", size=size)
    chat.shows("explain it", "acceptEdits")

    chat.types(f"{_ESC}{_ESC}")
    lines = chat.shows("Rewind to before", "chat and files")
    assert any("3" in line and "explain it" in line and "–" in line for line in lines)
    assert any("2" in line and "make it two" in line and "total.py" in line for line in lines)
    chat.plays("^2", "^\r")
    chat.shows("Continue?", "restore", "total.py")
    chat.plays("<y")
    chat.shows("Done.", "> make it two")

    assert (command.workspace / "total.py").read_text() == "total = 1\n"
    chat.plays("^\x15", f"^{_CTRL_D}")
    assert chat.ends() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "asks", "files", "turns"),
    [
        pytest.param(("/rewind 2\r",), True, "total = 1\n", 1, id="a number"),
        pytest.param(("/rewind 2 --chat-only\r",), True, "total = 2\n", 1, id="a number and an option"),
        pytest.param(("/rewind 1\r",), True, None, 3, id="the first message"),
        pytest.param(("/rewind\r", "1", "\r"), True, None, 3, id="the first message from the menu"),
        pytest.param(("/rewind 1 --chat-only\r",), False, "total = 2\n", 3, id="the first message, chat only"),
    ],
)
def test_a_rewind_names_a_message_and_before_the_first_one_begins_a_new_thread(
    command: Scripted, typed: tuple[str, ...], asks: bool, files: str | None, turns: int
) -> None:
    chat = _program(command, "resume", "shop")
    chat.shows("explain it", "acceptEdits")

    for keys in typed:
        chat.types(keys)
        if keys == "/rewind\r":
            chat.shows("Rewind to before", "write one")
    if asks:
        chat.plays("Continue?", "<y")
    chat.shows(*(["> make it two"] if "2" in typed[0] else ["> write one", "this one is kept as thread shop"]))
    chat.plays("^\x15", f"^{_CTRL_D}")

    assert chat.ends() == 0
    total = command.workspace / "total.py"
    assert (total.read_text() if total.exists() else None) == files
    threads = {thread["thread_id"]: thread["turns"] for thread in command.json("threads", "list")["threads"]}
    assert threads["shop"] == turns


@pytest.mark.slow
def test_a_rewind_that_is_declined_leaves_the_screen_as_it_was(command: Scripted) -> None:
    chat = _program(command, "resume", "shop")
    chat.shows("explain it", "acceptEdits")

    chat.plays("^/rewind 2\r", "Continue?", "<n", "Nothing was changed.")
    lines = chat.shows("mode acceptEdits")
    chat.plays(f"^{_CTRL_D}")

    assert (chat.ends(), sum(line.startswith("> explain it") for line in lines)) == (0, 1)


@pytest.mark.slow
def test_what_is_typed_before_the_menu_of_threads_begins_the_next_message(command: Scripted) -> None:
    command("run", "more", "--thread", "other")
    program = _program(command, "resume")
    program.types_at_once("half a thought")

    program.shows("Resume", "› ")
    program.types("\r")
    program.shows("> half a thought", "mode")
    program.plays("^\x15", f"^{_CTRL_D}")

    assert program.ends() == 0


@pytest.mark.slow
def test_a_rewind_of_a_thread_lists_its_messages_and_takes_files_alone(command: Scripted) -> None:
    program = _program(command, "rewind", "shop", "--yes")

    program.shows("Rewind to before", "› 3")
    program.types(_DOWN)
    program.shows("› 2")
    program.types("f")
    program.shows("files (", "d show diff")
    program.types("d")
    program.shows("-total = 1", "+total = 2", "d hide diff")
    program.types("d")
    program.shows("d show diff", hides=["-total = 1"])
    program.types("\r")
    program.shows("Done.")

    assert program.ends() == 0
    assert (command.workspace / "total.py").read_text() == "total = 1\n"
    assert [thread["turns"] for thread in command.json("threads", "list")["threads"]] == [3]


def test_a_message_whose_change_failed_names_no_file(command: Scripted) -> None:
    database = next((command.folder / "home").rglob("*.db"))
    before = [point.files for point in find_rewind_points(database, "shop")]
    with closing(sqlite3.connect(database)) as rows, rows:
        rows.execute("UPDATE journal SET status = 'error' WHERE call_id = 'c2'")

    after = [point.files for point in find_rewind_points(database, "shop")]

    assert (before, after) == ([(), ("total.py",), ("total.py",)], [(), (), ("total.py",)])


@pytest.mark.slow
def test_who_leaves_the_menu_changes_nothing(command: Scripted) -> None:
    program = _program(command, "rewind", "shop")

    program.shows("Rewind to before")
    program.types(_ESC)
    program.shows("Nothing was changed.")

    program.ends()
    assert (command.workspace / "total.py").read_text() == "total = 2\n"


@pytest.mark.slow
def test_a_thread_to_resume_is_chosen_by_typing_and_shows_what_it_waits_for(tmp_path: Path) -> None:
    call = {"command": "touch made"}
    replies = [TXT("hello"), TC("c1", "bash", call), TXT("world")]
    with scripted(tmp_path, replies) as command:
        command("run", "explain the cart", "--thread", "cart")
        command("run", "deploy it", "--thread", "deploy")
        command("run", "say more", "--thread", "more")
        chat = _program(command, "resume")

        lines = chat.shows("Resume", "explain the cart", "deploy it", "say more", "user: say more")
        assert any("waiting" in line and "1 approval" in line for line in lines)
        chat.types("cart")
        chat.shows("› ", "explain the cart", hides=["deploy it", "say more"])
        chat.types("\r")
        chat.shows("hello", "mode default")
        chat.plays("</resume")
        chat.shows("Resume", "say more", hides=["type to filter cart"])
        chat.plays("^more", "^\r")
        chat.shows("world", "thread more")
        chat.plays(f"^{_CTRL_D}")
        assert chat.ends() == 0


def test_where_no_keys_are_read_a_menu_with_scopes_has_the_numbers_of_its_rows() -> None:
    rows = [Row("c3", ("3", "now"), "third"), Row("c1", ("1", "1 h ago"), "first")]
    menu = Menu("Rewind to before", rows, {"b": "chat and files", "c": "chat"})

    shown = [line.split()[:2] for line in menu.as_text(40).splitlines()[1:]]
    picked = [menu.pick(typed) for typed in ("1", "3 c", "2")]
    assert shown == [["3", "now"], ["1", "1"]]
    assert picked == [Picked("c1", "chat and files"), Picked("c3", "chat"), None]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("a question", "thread  a question        1 approval, just now"),
        ("a" * 50, f"thread  {'a' * 20}…  1 approval, ju…"),
    ],
)
def test_a_note_is_cut_only_where_the_words_need_its_room(words: str, shown: str) -> None:
    assert format_rows([Row("t1", ("thread",), words, "1 approval, just now")], 46) == [shown]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "shown"), [(("top",), "q or Ctrl-C"), (("inspect", "shop", "--watch"), "idle")]
)
def test_a_view_that_is_redrawn_shows_no_keys_and_q_ends_it(
    command: Scripted, arguments: list[str], shown: str
) -> None:
    view = _program(command, *arguments)

    view.shows(shown)
    view.types("zzz")
    view.types("q")

    assert (view.ends(), "zzz" in view.output) == (0, False)
