from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import pytest
import typer

from graph_agent.cli.completion import FILES, Offer, offered, split_line


class Colour(StrEnum):
    red = "red"
    green = "green"


def _program() -> Any:
    app = typer.Typer(add_completion=False)
    inner = typer.Typer(help="What is in the box.")

    @app.command()
    def paint(
        thing: str,
        rest: list[str],
        *,
        colour: Annotated[Colour, typer.Option("--colour", help="Which.")] = Colour.red,
        twice: Annotated[bool, typer.Option("--twice", help="Two coats.")] = False,
        note: Annotated[list[str] | None, typer.Option("--note")] = None,
        db: Annotated[str, typer.Option("--db")] = "",
    ) -> None:
        """Paint a thing. At length."""

    @inner.command()
    def show(name: str) -> None:
        """Show one."""

    app.add_typer(inner, name="box")
    return typer.main.get_command(app)


def _values(path: Sequence[str], name: str, typed: str, given: Mapping[str, str]) -> Sequence[Offer]:
    if name == "db":
        return [FILES]
    return [
        Offer(f"{name}-{number}", f"{'.'.join(path)} {typed} {given.get('db', '')}".strip()) for number in (1, 2)
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", ["paint", "box"]),
        ("pa", ["paint"]),
        ("box ", ["show"]),
        ("box show ", ["name-1", "name-2"]),
        ("box show name-2", ["name-2"]),
        ("box show -2", []),
        ("box show e-2", ["name-2"]),
        ("box show name-1 ", []),
        ("paint ", ["thing-1", "thing-2"]),
        ("paint x ", ["rest-1", "rest-2"]),
        ("paint x y z ", ["rest-1", "rest-2"]),
        ("paint 'x y' ", ["rest-1", "rest-2"]),
        ("paint --c", ["--colour"]),
        ("paint --twice --note a --", ["--colour", "--note", "--db", "--help"]),
        ("paint --colour ", ["red", "green"]),
        ("paint --colour=g", ["--colour=green"]),
        ("paint --colour red ", ["thing-1", "thing-2"]),
        ("paint --twice ", ["thing-1", "thing-2"]),
        ("paint --note ", ["note-1", "note-2"]),
        ("paint -- --no", []),
        ("paint -- ", ["thing-1", "thing-2"]),
        ("paint --db ", [":files"]),
        ("paint --db=x", [":files"]),
        ("nothing ", ["paint", "box"]),
        ("paint --unknown ", ["thing-1", "thing-2"]),
    ],
)
def test_what_may_stand_at_the_cursor_is_offered(line: str, words: list[str]) -> None:
    assert [one.value for one in offered(_program(), split_line(line), _values)] == words


def test_commands_and_options_come_with_what_they_do_and_values_with_what_was_given_before() -> None:
    told = [offered(_program(), split_line(line), _values)[0] for line in ("p", "paint --c", "paint --db /x t")]

    assert told == [
        ("paint", "Paint a thing."),
        ("--colour", "Which."),
        ("thing-1", "paint t /x"),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", [""]),
        ("a b", ["a", "b"]),
        ("a b ", ["a", "b", ""]),
        ("a 'b c' d", ["a", "b c", "d"]),
        ("a 'b c ", ["a", "b c "]),
        ("a #b", ["a", "#b"]),
    ],
)
def test_a_line_falls_into_words_the_last_of_them_unfinished(line: str, words: list[str]) -> None:
    assert split_line(line) == words
