import pytest

from policy.shell.syntax_tree import TreeContent, echoed_text, walk_tree
from tools.shell_ops.bash_parser import parse_bash


def _walk(text: str) -> TreeContent:
    return walk_tree(parse_bash(text), text.encode())


@pytest.mark.parametrize(
    ("text", "stdin"),
    [
        ("sh <<EOF\na b\nEOF", "a b\n"),
        ("sh <<< 'a b'", "a b"),
        ("echo 'a b' | sh", "a b"),
        ("echo 'a b' | cat | sh", "a b"),
        ("cat <<EOF | sh\na b\nEOF", "a b\n"),
        ("cat x | sh", ""),
        ("sh < x", ""),
    ],
)
def test_input_that_the_text_contains_is_kept(text: str, stdin: str) -> None:
    assert _walk(text).commands[-1].stdin == stdin


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("cd a", ["a"]),
        *((text, [None]) for text in ("cd", "cd -", "cd a/../b", "cd $x", "popd")),
        ("CDPATH=x cd a", [None, None]),
    ],
)
def test_a_change_of_folder_is_known_only_if_its_text_is_clear(text: str, moves: list[str | None]) -> None:
    assert _walk(text).moves == moves


@pytest.mark.parametrize(
    ("text", "is_clear"),
    [
        ("case x in a|'b') c;; *) d;; esac", True),
        ("case $x in a) c;; esac", False),
        ("case x in $(id)) c;; esac", False),
        ("case x in ~) c;; esac", False),
    ],
)
def test_a_case_is_clear_if_nothing_in_it_is_expanded(text: str, is_clear: bool) -> None:
    assert (_walk(text).unclear_reason == "") is is_clear


def test_an_unknown_kind_of_node_makes_a_text_unclear_and_is_searched() -> None:
    call = {"Type": "CallExpr", "Args": [{"Parts": [{"Type": "Lit", "Value": "a"}]}]}

    found = walk_tree({"Type": "NewClause", "Inside": [{"Cmd": call}]}, b"")

    assert [command.text for command in found.commands] == ["a"]
    assert found.unclear_reason == "it uses a part of the shell's language that is not examined"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for x in a; do :; done", "it runs a for loop"),
        ("for ((i=0;i<3;i++)); do :; done", "it runs a for loop"),
        ("select x in a; do :; done", "it runs a select loop"),
        ("f() { a; }", "it defines a function"),
        ("coproc a", "it starts a coprocess"),
        ("[[ -f a && ! ( b == c ) ]]", "it tests a condition with [[ ]]"),
        ("let i=1+2", "it computes with let"),
        ("((i = -(1 + 2)))", "it computes with (( ))"),
        ("a $(b)", "it substitutes a command"),
        ("a <(b)", "it substitutes a command"),
        ("a $((1 + 2))", "the shell would expand a '$'"),
        ("a $b", "the shell would expand a '$'"),
        ("a @(b|c)", "it uses an extended pattern"),
        ("a=(b c)", "it assigns to an array"),
        ("a {b,c}", "the shell would expand '{'"),
        *((text, "") for text in ("while a; do b; done", "if a; then b; fi", "case a in b) c;; esac")),
        *((text, "") for text in ("{ a; }", "(a)", "time a", "export a=b", "! a && b || c | d &", "a 'b' \"c\"")),
    ],
)
def test_what_makes_a_text_unclear_is_said_in_plain_words(text: str, reason: str) -> None:
    assert _walk(text).unclear_reason == reason


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("echo", "-n", "-e", "rm", "-e"), "rm -e"),
        (("/bin/echo", r"r\x6d"), "r\\x6d\nrm"),
        (("printf", "%s", "rm a"), "rm a"),
        (("printf", "%s %s;", "rm", "a", "rm", "b"), "rm a;rm b;"),
        (("printf", "5%% %d"), "5%% %d"),
        (("printf", "100%% %s", "x"), "100% x"),
        *((words, "") for words in (("printf",), ("cat", "x"), ())),
    ],
)
def test_the_text_that_echo_and_printf_write_is_known(words: tuple[str, ...], text: str) -> None:
    assert echoed_text(words) == text
