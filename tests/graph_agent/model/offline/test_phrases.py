import re
from typing import get_args

import pytest

from graph_agent.model.offline.parser import (
    CHINESE,
    ENGLISH,
    QUOTED,
    SYNTAX,
    Command,
    CommandKind,
    Phrase,
    phrase_table,
)

FACT, FILE, FOLDER, LINE, TEXT = phrase_table(
    "remember: <T:text>|\ncreate: <F:path>\nlist: (<F:path>)?\nread: f <N:first>\ncreate: f(<T:text>)?"
)


def read(phrase: Phrase, text: str) -> Command:
    command = phrase.match(text)
    assert command is not None
    return command


@pytest.mark.parametrize(
    ("text", "fact"),
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
        ("", ""),
    ],
)
def test_quotes_of_one_kind_around_a_text_are_removed(text: str, fact: str) -> None:
    assert read(FACT, text) == Command("remember", text=fact)


def test_an_apostrophe_inside_a_word_is_no_quote() -> None:
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
    assert read(FILE, text) == Command("create", name, "")


@pytest.mark.parametrize(
    ("text", "name"),
    [("here", "."), ("‘this folder’", "."), ("当前目录", "."), ("", "."), ("src", "src"), ("..", "..")],
)
def test_words_for_here_mean_the_workspace(text: str, name: str) -> None:
    assert read(FOLDER, text) == Command("list", name)


def test_texts_become_whole_lines_and_keep_their_first_indentation() -> None:
    texts = ("fa", 'f"a\\n"', "f", "f  a\n    b\n\n")

    assert [read(TEXT, text) for text in texts] == [
        Command("create", "", content) for content in ("a\n", "a\n", "", "  a\n    b\n")
    ]


def test_line_numbers_are_digits_of_any_width_or_chinese_words() -> None:
    words = {"7": 7, "１２": 12, "二": 2, "两": 2, "十": 10, "十二": 12, "二十": 20, "九十九": 99}

    assert {word: read(LINE, f"F  {word}") for word in words} == {
        word: Command("read", "", first=number, last=number) for word, number in words.items()
    }


def test_a_phrase_takes_the_rest_of_a_message_where_it_ends_in_an_unquoted_text() -> None:
    patterns = ("a <T:text>", "a <B:text>", "a <F:path>", "a <B:text>( b)?", "a <T:text>")
    texts = ("a x", "a x", "a x", "a x", "a 'x'")

    assert [
        phrase_table(f"create: {pattern}")[0].takes_everything_of(text)
        for pattern, text in zip(patterns, texts, strict=True)
    ] == [True, True, False, False, False]


def test_the_notation_has_parts_continued_rows_and_examples_of_several_lines() -> None:
    (phrase,) = phrase_table("THE: (the )?\nlist: open\n    ( <THE><F:path>)?\n  - open the src\n  - open⏎x")

    assert phrase.examples == ("open the src", "open\nx")
    assert [phrase.match(text) for text in ("OPEN  the src", "open\nx", "opened")] == [
        Command("list", "src"),
        Command("list", "x"),
        None,
    ]


@pytest.mark.parametrize("phrases", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_each_phrase_is_the_first_that_fits_its_examples(phrases: tuple[Phrase, ...]) -> None:
    first = [
        next(one for one in phrases if one.pattern.fullmatch(example)) is phrase
        for phrase in phrases
        for example in phrase.examples
    ]

    assert (all(first), [phrase.pattern for phrase in phrases if not phrase.examples]) == (True, [])


def test_no_english_phrase_fits_a_chinese_example() -> None:
    examples = [example for phrase in CHINESE for example in phrase.examples]

    assert [example for example in examples if any(phrase.match(example) for phrase in ENGLISH)] == []


def test_every_command_has_a_syntax_and_examples_in_both_languages() -> None:
    commands = list(get_args(CommandKind))

    assert [syntax.kind for syntax in SYNTAX] == commands
    for phrases in (ENGLISH, CHINESE):
        assert {read(phrase, example).kind for phrase in phrases for example in phrase.examples} == set(commands)
