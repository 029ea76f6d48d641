import pytest

from graph_agent.toolbox.shell_facts import parse_bash
from policy.shell.words import Word, is_invisible, read_word


@pytest.mark.parametrize(
    ("char", "invisible"),
    [
        ("a", False),
        (" ", False),
        ("\n", False),
        ("\t", False),
        ("\r", True),
        ("\x1b", True),
        ("\u202e", True),
        ("\u3164", True),
        ("\U000e0041", True),
        ("é", False),
    ],
)
def test_controls_and_invisible_characters_are_told_from_the_rest(char: str, invisible: bool) -> None:
    assert is_invisible(char) is invisible


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a", Word("a")),
        (r"a\ b", Word("a b")),
        ("'a'\"b\"c", Word("abc")),
        (r'"a\"\x"', Word(r'a"\x')),
        ("HEAD~1", Word("HEAD~1")),
        ("stash@{0}", Word("stash@{0}")),
        ("main@{u}..", Word("main@{u}..")),
        ("{a{b}c,d}", Word("{a{b}c,d}", "the shell would expand '{'", spellings=("a{b}c", "d"))),
        ("{a,b", Word("{a,b", "the shell would expand '{'", spellings=("{a,b",))),
        ("[", Word("[")),
        ("[a]", Word("[a]", is_pattern=True)),
        ("of=~/x", Word("of=~/x", "the shell would expand '~'")),
        ("PATH=a:~/x", Word("PATH=a:~/x", "the shell would expand '~'")),
        ("--opt=~/x", Word("--opt=~/x")),
        ("'of'=~/x", Word("of=~/x")),
        ("'{a,b}'", Word("{a,b}")),
        ("*.py", Word("*.py", is_pattern=True)),
        ("'*'", Word("*")),
        (r"\*", Word("*")),
        ("~/x", Word("~/x", "the shell would expand '~'")),
        ("{a,'b'}", Word("{a,b}", "the shell would expand '{'", spellings=("a", "b"))),
        ("{1..3}", Word("{1..3}", "the shell would expand '{'", spellings=("1", "2", "3"))),
        ("a$b", Word("a$b", "the shell would expand a '$'")),
        ('"é$(id)"', Word("é$(id)", "it substitutes a command")),
        (r"$'\x72\155\u0041\n\cA'", Word("rmA\n\x01", "it uses the quotes $'…'")),
    ],
)
def test_a_word_is_what_the_shell_will_see_or_says_why_it_may_not_be(text: str, word: Word) -> None:
    text = f"x {text}"
    tree = parse_bash(text)

    assert read_word(tree["Stmts"][0]["Cmd"]["Args"][1], text.encode()) == word


def test_in_the_value_of_an_assignment_a_tilde_may_stand_behind_each_colon() -> None:
    tree = parse_bash("X=a:~/b")
    value = tree["Stmts"][0]["Cmd"]["Assigns"][0]["Value"]

    assert read_word(value, b"X=a:~/b", is_value=True) == Word("a:~/b", "the shell would expand '~'")
