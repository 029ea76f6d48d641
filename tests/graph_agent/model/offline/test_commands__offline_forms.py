import re

import pytest

from graph_agent.model.offline.commands import QUOTED, ReadFile, folder, form, line_number, lines, path, plain


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (" word ", "word"),
        ('"a \\"b\\"\\n\\t\\\\ \\d"', 'a "b"\n\t\\ \\d'),
        ("'a\\nb'", "a\\nb"),
        ("`x`", "x"),
        ("“你好”", "你好"),
        ("「你好」", "你好"),
        ("『a』", "a"),
        ("《a b》", "a b"),
        ("‘a b’", "a b"),
        ("```\na\n  b\n```", "a\n  b"),
        ("```py\n a```", " a"),
        ('"a" "b"', '"a" "b"'),
        ('"', '"'),
        (None, ""),
    ],
)
def test_quotes_of_one_kind_around_a_text_are_taken_off(text: str | None, read: str) -> None:
    assert plain(text) == read


def test_an_apostrophe_within_a_word_is_no_quote() -> None:
    assert re.findall(QUOTED, "it's 'one two' and isn't") == ["'one two'"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a.txt.", "a.txt"),
        ("a.txt。", "a.txt"),
        ("..", ".."),
        ('"odd."', "odd."),
        ("here", "here"),
        ("?", ""),
        ("a\\ b", "a b"),
        ("@a.txt.", "a.txt"),
        ('@"a b"', "a b"),
        ('"@a"', "@a"),
    ],
)
def test_a_file_name_loses_the_full_stop_of_the_sentence_and_the_at_of_completion(text: str, name: str) -> None:
    assert path(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [("here", "."), ("this folder", "."), ("当前目录", "."), (None, "."), ("src", "src"), ("..", "..")],
)
def test_words_for_the_place_where_we_are_name_the_workspace(text: str | None, name: str) -> None:
    assert folder(text) == name


def test_whole_lines_end_with_a_line_feed() -> None:
    assert [lines(text) for text in ("a", '"a\\n"', "", None)] == ["a\n", "a\n", "", ""]


def test_numbers_are_read_in_digits_of_any_width_and_in_chinese_words() -> None:
    words = ["7", "１２", "二", "两", "十", "十二", "二十", "九十九"]

    assert [line_number(word) for word in words] == [7, 12, 2, 2, 10, 12, 20, 99]
    assert line_number(None) is None


def test_an_indentation_before_bare_lines_stays() -> None:
    assert lines("  a\n    b\n\n") == "  a\n    b\n"


def test_slots_of_a_wording_take_names_short_texts_and_the_rest() -> None:
    wording = form(
        r"open\s+<F:path>(?:\s+at\s+(?P<at>\d+))?", lambda found: ReadFile(path(found["path"])), "open x"
    )

    found = wording.pattern.fullmatch("OPEN 'my file' at 7")

    assert found is not None
    assert (wording.build(found.groupdict()), line_number(found["at"])) == (ReadFile("my file"), 7)
    assert wording.pattern.fullmatch("open my file") is None


def test_a_wording_takes_the_rest_where_it_ends_in_a_text() -> None:
    patterns = [r"a\s+<T:text>", r"a\s+<B:text>", r"a\s+<F:path>", r"a\s+<B:text>(?:\s+b)?"]

    assert [form(pattern, lambda _: ReadFile("x")).takes_the_rest for pattern in patterns] == [
        True,
        True,
        False,
        False,
    ]
