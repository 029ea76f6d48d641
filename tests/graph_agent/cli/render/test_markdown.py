import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from graph_agent.cli.render.escape import escape
from graph_agent.cli.render.markdown import Markdown

_PIECES = st.sampled_from(
    [
        "# ",
        "- ",
        "1. ",
        "> ",
        "```",
        "```py\n",
        "~~~",
        "===\n",
        "---\n",
        "> ```\n",
        "- ~~~\n",
        "|",
        "|-|-|",
        "**",
        "`",
        "\n",
        "\n\n",
        "    ",
        "word ",
        "日本",
        "🎉",
    ]
)


def _shown(text: str, width: int = 40) -> list[str]:
    told = Markdown(Console(width=width))
    return [line.plain for line in (*told.add(text), *told.end())]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Title #\n## Next\n#no heading", ["Title", "Next", "#no heading"]),
        ("a\nb\n\nc", ["a", "b", "", "c"]),
        ("* one\n  - two\n    3. three", ["• one", "  • two", "    3. three"]),
        ("- [ ] open\n- [x] done", ["• [ ] open", "• [x] done"]),
        ("> said\n---\n***", ["│ said", "─" * 40, "─" * 40]),
        ("```python\nx = [1]  # **no mark**\n\n```\nafter", ["  python", "  x = [1]  # **no mark**", "", "after"]),
        ("````\n```\n````\nafter", ["  ```", "after"]),
        ("- item\n  ```\n  code\n    more\n  ```", ["• item", "    code", "      more"]),
        ("    literal *args, **kwargs", ["    literal *args, **kwargs"]),
        ("- item\n\n    with **more**", ["• item", "", "    with more"]),
        ("a | b\nno table", ["a | b", "no table"]),
        ("|a|b|\n|-|-|\n|1|2|\nafter", ["a   b", "─────", "1   2", "after"]),
        ("a\tb \x1b[2J \u202e", ["a   b \\x1b[2J \\u202e"]),
        ("one\r\ntwo", ["one", "two"]),
        ("> ```py\n> x = 1\n>   y\n> ```\n> so", ["│   py", "│   x = 1", "│     y", "│ so"]),
        ("> ```\n> left open\nafter", ["│   left open", "after"]),
        ("> > deep\n> - item\n> # Head", ["│ │ deep", "│ • item", "│ Head"]),
        ("- ```sh\n  ls\n  ```\n- next", ["•   sh", "    ls", "• next"]),
        ("1. do\n\n   ```\n   ls\n   ```\n2. then", ["1. do", "", "     ls", "2. then"]),
        ("> 1. ```\n>    ls\n>    ```", ["│ 1.", "│      ls"]),
        ("Title\n=====\nNext **one**\n---\ntext", ["Title", "Next one", "text"]),
        ("text\n\n---\nmore\n--\n-- me", ["text", "", "─" * 40, "more", "--", "-- me"]),
        ("- item\ngoes on\n---", ["• item", "goes on", "─" * 40]),
        ("👨\u200d👩\u200d👧 in `a\u200db`", ["👨\u200d👩\u200d👧 in a\\u200db"]),
    ],
)
def test_each_kind_of_line_has_its_look(text: str, lines: list[str]) -> None:
    assert [line.rstrip() for line in _shown(text)] == lines


def test_an_underline_makes_the_line_above_it_a_heading() -> None:
    told = Markdown(Console(width=40))
    lines = [*told.add("One\n===\nTwo\n---\nthree\n"), *told.end()]

    assert [(line.plain, [str(span.style) for span in line.spans]) for line in lines] == [
        ("One", ["bold underline"]),
        ("Two", ["bold"]),
        ("three", []),
    ]


def test_a_long_item_goes_on_below_its_first_word() -> None:
    assert _shown("10. one two three four\n日本語日本語日本語日本語", 14) == [
        "10. one two",
        "    three four",
        "日本語日本語日",
        "本語日本語",
    ]


def test_a_line_is_finished_as_soon_as_nothing_can_change_it() -> None:
    told = Markdown(Console(width=40))

    steps = [
        ([line.plain for line in told.add(piece)], [line.plain for line in told.tail()])
        for piece in ("one *tw", "o*\n```\nco", "de\n```\n|a|", "b|\n|-|-|\n", "|1|", "2|\nend")
    ]

    assert steps == [
        ([], ["one *tw"]),
        (["one two"], ["  co"]),
        (["  code"], ["|a|"]),
        ([], ["a   b", "─────"]),
        ([], ["a   b", "─────", "1"]),
        ([], ["a   b", "─────", "1   2", "end"]),
    ]


@given(st.lists(st.one_of(_PIECES, st.text(max_size=6)), max_size=40), st.integers(10, 60))
def test_in_whatever_pieces_a_text_comes_its_lines_are_the_same_and_fit(pieces: list[str], width: int) -> None:
    told = Markdown(Console(width=width))
    shown = []
    for piece in pieces:
        shown += told.add(piece)
        told.tail()
    shown += told.end()

    assert [line.plain for line in shown] == _shown("".join(pieces), width)
    assert all(line.cell_len <= width for line in shown)


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1).map(lambda word: f" {word} "))
@example(" \u115f ")
def test_no_word_is_lost_between_marks(word: str) -> None:
    table = f"|{word}|x|\n|-|-|\n|{word}|x|"
    text = f"# {word}\n- {word}\n> {word}\n```\n{word}\n```\n{table}\n**{word.strip()}** `{word}`"

    shown = "".join("".join(_shown(text, 80)).split())

    assert shown.count(escape(word.strip())) >= 8


def test_of_a_long_table_that_arrives_only_what_has_room_on_the_screen_is_drawn_and_all_of_it_is_told() -> None:
    told = Markdown(Console(width=40, height=10))
    told.add("|a|b|\n|-|-|\n" + "|1|2|\n" * 1_000)

    assert (len(told.tail()), len(told.end())) == (12, 1_002)
