import subprocess
import time

import pytest

from policy.shell.words import Piece, spellings


@pytest.mark.parametrize(
    "word",
    [
        "/{bin,etc}", "{,rm}", "a{b{c,d},e}f", "{a}{b,c}", "{a{b,c}", "{a,b}}", "{1..4}", "{3..1}", "{08..11..2}",
        "{a..d}x", "{x,{1..2}}", "a{b}", "a,b", "{}", "{,}", "{1..x}", "{a,b}{c,d}{e,f}",
    ],
)  # fmt: skip
def test_braces_become_the_words_that_bash_makes_of_them(word: str) -> None:
    made = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {word}"], capture_output=True, text=True, check=True
    ).stdout

    assert spellings([Piece(word, is_bare=True)]) == tuple(filter(None, made.split("\n")))


def test_quoted_signs_are_text() -> None:
    assert spellings([Piece("{a,", is_bare=True), Piece("b,c", is_bare=False), Piece("}", is_bare=True)]) == (
        "a",
        "b,c",
    )


@pytest.mark.parametrize("word", ["{1..900000000}", "{a,b}" * 9, "{" * 4000 + ",}" * 4000, "{a," * 4000])
def test_what_is_too_much_is_left_as_it_stands_in_no_time(word: str) -> None:
    began = time.monotonic()

    assert spellings([Piece(word, is_bare=True)]) in ((), (word,))
    assert time.monotonic() - began < 2
