import subprocess

import pytest

from policy.shell.words import Piece, Word, brace_expansion, is_invisible, read_word
from tools.shell_ops.bash_parser import parse_bash


def test_control_and_invisible_characters_are_recognised() -> None:
    chars = "a \n\té\r\x1b\u202e\u3164\U000e0041"

    assert [is_invisible(char) for char in chars] == [False] * 5 + [True] * 5


@pytest.mark.parametrize(
    ("text", "word"),
    [
        *((text, Word(text)) for text in ("a", "HEAD~1", "stash@{0}", "main@{u}..", "[", "--opt=~/x")),
        (r"a\ b", Word("a b")),
        ("'a'\"b\"c", Word("abc")),
        (r'"a\"\x"', Word(r'a"\x')),
        ("{a{b}c,d}", Word("{a{b}c,d}", "the shell would expand '{'", braces=("a{b}c", "d"))),
        ("{a,b", Word("{a,b", "the shell would expand '{'", braces=("{a,b",))),
        ("[a]", Word("[a]", is_pattern=True)),
        ("of=~/x", Word("of=~/x", "the shell would expand '~'")),
        ("PATH=a:~/x", Word("PATH=a:~/x", "the shell would expand '~'")),
        ("'of'=~/x", Word("of=~/x")),
        ("'{a,b}'", Word("{a,b}")),
        ("*.py", Word("*.py", is_pattern=True)),
        ("'*'", Word("*")),
        (r"\*", Word("*")),
        ("~/x", Word("~/x", "the shell would expand '~'")),
        ("{a,'b'}", Word("{a,b}", "the shell would expand '{'", braces=("a", "b"))),
        ("{1..3}", Word("{1..3}", "the shell would expand '{'", braces=("1", "2", "3"))),
        ("a$b", Word("a$b", "the shell would expand a '$'")),
        ('"é$(id)"', Word("é$(id)", "it substitutes a command")),
        (r"$'\x72\155\u0041\n\cA'", Word("rmA\n\x01", "it uses the quotes $'…'")),
    ],
)
def test_a_word_is_what_the_shell_will_see_or_has_a_reason_why_not(text: str, word: Word) -> None:
    text = f"x {text}"
    tree = parse_bash(text)

    assert read_word(tree["Stmts"][0]["Cmd"]["Args"][1], text.encode()) == word


def test_in_an_assigned_value_a_tilde_after_any_colon_is_expanded() -> None:
    tree = parse_bash("X=a:~/b")
    value = tree["Stmts"][0]["Cmd"]["Assigns"][0]["Value"]

    assert read_word(value, b"X=a:~/b", is_value=True) == Word("a:~/b", "the shell would expand '~'")


@pytest.mark.parametrize(
    "word",
    [
        "/{bin,etc}", "{,rm}", "a{b{c,d},e}f", "{a}{b,c}", "{a{b,c}", "{a,b}}", "{1..4}", "{3..1}", "{08..11..2}",
        "{a..d}x", "{x,{1..2}}", "a{b}", "a,b", "{}", "{,}", "{1..x}", "{a,b}{c,d}{e,f}",
    ],
)  # fmt: skip
def test_braces_expand_to_the_words_that_bash_makes(word: str) -> None:
    script = f"printf '%s\\n' {word}"
    made = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout

    assert brace_expansion([Piece(word, is_bare=True)]) == tuple(filter(None, made.split("\n")))


def test_quoted_brace_signs_are_text() -> None:
    pieces = [Piece("{a,", is_bare=True), Piece("b,c", is_bare=False), Piece("}", is_bare=True)]

    assert brace_expansion(pieces) == ("a", "b,c")


@pytest.mark.parametrize("word", ["{1..900000000}", "{a,b}" * 9, "{" * 4000 + ",}" * 4000, "{a," * 4000])
@pytest.mark.timeout(60)
def test_a_huge_expansion_is_left_alone(word: str) -> None:
    # Expanded, it would need hours or more memory than there is.
    assert brace_expansion([Piece(word, is_bare=True)]) in ((), (word,))
