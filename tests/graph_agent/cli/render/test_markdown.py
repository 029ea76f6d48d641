import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from graph_agent.cli.render.markdown import MarkdownStream
from graph_agent.wording import escape

_MARKS = [
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
    "**",
    "`",
    "\n",
    "\n\n",
    "    ",
    "word ",
    "日本",
    "🎉",
]
_PIECES = st.sampled_from([*_MARKS, "|", "|-|-|"])


def _lines(text: str, width: int = 40) -> list[Text]:
    stream = MarkdownStream(Console(width=width, _environ={"TERM": "xterm-256color"}))
    return [*stream.add(text), *stream.end()]


def _shown(text: str, width: int = 40) -> list[str]:
    return [line.plain.rstrip() for line in _lines(text, width)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Title #\n## Next\n#no heading", ["Title", "Next", "#no heading"]),
        ("Title\n=====\nNext **one**\n---\ntext", ["Title", "Next one", "text"]),
        ("a\nb\n\nc", ["a", "b", "", "c"]),
        ("one\r\ntwo", ["one", "two"]),
        ("a\tb \x1b[2J \u202e", ["a   b \\x1b[2J \\u202e"]),
        ("👨\u200d👩\u200d👧 in `a\u200db`", ["👨\u200d👩\u200d👧 in a\\u200db"]),
        ("* one\n  - two\n    3. three", ["• one", "  • two", "    3. three"]),
        ("- [ ] open\n- [x] done", ["• [ ] open", "• [x] done"]),
        ("- item\n\n  with **more**\n- next", ["• item", "  with more", "• next"]),
        ("9. nine\n10. ten", ["9. nine", "10. ten"]),
        ("> said\n> > deep\n\n> 1. item", ["▌ said", "▌ ▌ deep", "", "▌ 1. item"]),
        ("```python\nx = [1]  # **no mark**\n\n```\nafter", ["  python", "  x = [1]  # **no mark**", "", "after"]),
        ("````\n```\n````\nafter", ["  ```", "after"]),
        ("- item\n  ```sh\n  code\n    more\n  ```", ["• item", "    sh", "    code", "      more"]),
        ("> ```py\n> x = 1\n>   y\n> ```\n> so", ["▌   py", "▌   x = 1", "▌     y", "▌ so"]),
        ("    literal *args, **kwargs", ["  literal *args, **kwargs"]),
        ("a | b\nno table", ["a | b", "no table"]),
        ("|a|b|\n|-|-|\n|1|2|\n\nafter", ["a   b", "─────", "1   2", "", "after"]),
        ("|name|count|\n|:-|-:|\n|日本語|12|", ["name     count", "──────────────", "日本語      12"]),
        ("|a|b|\n|-|-|\n|a \\| b|3|", ["a       b", "─────────", "a | b   3"]),
        ("|a|\n|-|\n|1|with no head|", ["|a|", "|-|", "|1|with no head|"]),
        ("|a|b|c|d|e|f|g|h|i|\n|-|-|-|-|-|-|-|-|-|", ["|a|b|c|d|e|f|g|h|i|", "|-|-|-|-|-|-|-|-|-|"]),
    ],
)
def test_each_kind_of_block_has_its_look(text: str, lines: list[str]) -> None:
    assert _shown(text) == lines


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("**bold** *it* `code` ~~gone~~", "bold it code gone"),
        ("__init__ and _x_ and snake_case", "__init__ and _x_ and snake_case"),
        ("Vec<T> and <b>x</b> &amp; &#27;[2J", "Vec<T> and <b>x</b> &amp; &#27;[2J"),
        (r"C:\_foo\bar \[x\] \*no mark\*", r"C:\_foo\bar \[x\] *no mark*"),
        (
            "[docs](https://x.y/a_(b)) <https://a.b> ![pic](p.png)",
            "docs (https://x.y/a_(b)) https://a.b pic (p.png)",
        ),
        ("[note]: https://x.y", "[note]: https://x.y"),
        ("[red]x[/] [/'A', 1]", "[red]x[/] [/'A', 1]"),
        ("2 * 3 * 4 ** 5", "2 * 3 * 4 ** 5"),
        ("a **never closed", "a **never closed"),
    ],
)
def test_only_marks_disappear(line: str, shown: str) -> None:
    assert _shown(line, 80) == [shown]


def test_marks_become_styles() -> None:
    [shown] = _lines("**a `b`** *c*")

    styles = [
        (shown.plain[span.start : span.end], str(span.style)) for span in shown.spans if str(span.style) != "none"
    ]
    assert styles == [("a ", "bold"), ("b", "bold cyan"), ("c", "italic")]


def test_long_lines_are_wrapped_by_words_and_aligned_with_the_text_of_their_item() -> None:
    assert _shown("10. one two three four\n\n日本語日本語日本語日本語", 14) == [
        "10. one two",
        "    three four",
        "",
        "日本語日本語日",
        "本語日本語",
    ]
    cells = _shown(f"| a | b |\n|---|---|\n| {'word ' * 12}| {'x' * 30} |", 30)
    assert (max(map(len, cells)) <= 30, "".join(cells).count("word"), "".join(cells).count("x")) == (True, 12, 30)


def test_a_block_is_printed_as_soon_as_nothing_can_change_it() -> None:
    stream = MarkdownStream(Console(width=40, _environ={"TERM": "xterm-256color"}))

    steps = [
        ([line.plain for line in stream.add(piece)], [line.plain for line in stream.tail()])
        for piece in ("one *tw", "o*\n\n```\nco", "de\n```\n|a|", "b|\n|-|-|\n", "|1|", "2|\n\n- x\n-", " y")
    ]

    assert steps == [
        ([], ["one *tw"]),
        (["one two", ""], ["  co"]),
        (["  code"], ["|a|"]),
        ([], ["a   b", "─────"]),
        ([], ["a   b", "─────", "1"]),
        (["a   b", "─────", "1   2", ""], ["• x", "•"]),
        ([], ["• x", "• y"]),
    ]


def test_a_long_code_block_is_printed_while_it_arrives_and_never_cut_within_a_string() -> None:
    code = [
        "def f(x):",
        '    """doc',
        *(f"    line {number}" for number in range(80)),
        '    """',
        *["    y = 1"] * 80,
    ]
    stream = MarkdownStream(Console(width=80))

    early = stream.add("```python\n" + "\n".join(code) + "\n")
    shown = [*early, *stream.end()]
    inside = {str(shown[number].spans[-1].style) for number in range(4, 80)}

    assert [line.plain for line in shown] == ["  python", *(f"  {line}" for line in code)]
    assert (len(early) > 100, len(inside)) == (True, 1)


@pytest.mark.slow
@given(st.lists(st.one_of(_PIECES, st.text(max_size=6)), max_size=40), st.integers(10, 60))
def test_the_lines_fit_and_do_not_depend_on_the_pieces_a_text_comes_in(pieces: list[str], width: int) -> None:
    stream = MarkdownStream(Console(width=width))
    shown = []
    for piece in pieces:
        shown += stream.add(piece)
        stream.tail()
    shown += stream.end()

    assert [line.plain for line in shown] == [line.plain for line in _lines("".join(pieces), width)]
    assert all(line.cell_len <= width for line in shown)


@pytest.mark.slow
@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1).map(lambda word: f" {word} "))
@example(" \u115f ")
def test_no_word_is_lost_between_marks(word: str) -> None:
    table = f"|{word}|x|\n|-|-|\n|{word}|x|\n"
    text = f"# {word}\n- {word}\n\n> {word}\n\n```\n{word}\n```\n{table}\n**{word.strip()}** `{word}`"

    shown = "".join("".join(_shown(text, 80)).split())

    assert shown.count(escape(word.strip())) >= 8


@pytest.mark.slow
def test_of_a_long_table_that_arrives_only_the_rows_with_room_on_the_screen_are_drawn() -> None:
    stream = MarkdownStream(Console(width=40, height=10))
    stream.add("|a|b|\n|-|-|\n" + "|1|2|\n" * 1_000)

    assert (len(stream.tail()), len(stream.end())) == (12, 1_002)
