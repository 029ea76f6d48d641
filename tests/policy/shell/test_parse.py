import pytest

from graph_agent.toolbox.shell_facts import parse_bash
from policy.shell.parse import Found, walk


def _walk(text: str) -> Found:
    return walk(parse_bash(text), text.encode())


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
def test_what_a_command_is_fed_is_kept_where_it_stands_in_the_text(text: str, stdin: str) -> None:
    assert _walk(text).commands[-1].stdin == stdin


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("cd a", ["a"]),
        ("cd", [None]),
        ("cd -", [None]),
        ("cd a/../b", [None]),
        ("cd $x", [None]),
        ("popd", [None]),
        ("CDPATH=x cd a", [None, None]),
    ],
)
def test_changes_of_folder_are_followed_only_where_their_text_says_where_to(
    text: str, moves: list[str | None]
) -> None:
    assert _walk(text).moves == moves


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("case x in a|'b') c;; *) d;; esac", True),
        ("case $x in a) c;; esac", False),
        ("case x in $(id)) c;; esac", False),
        ("case x in ~) c;; esac", False),
    ],
)
def test_a_choice_is_plain_where_nothing_in_it_is_expanded(text: str, is_plain: bool) -> None:
    assert (_walk(text).not_plain == "") is is_plain


def test_a_kind_of_node_nobody_knows_makes_a_text_unclear_and_is_looked_into() -> None:
    call = {"Type": "CallExpr", "Args": [{"Parts": [{"Type": "Lit", "Value": "a"}]}]}

    found = walk({"Type": "NewClause", "Inside": [{"Cmd": call}]}, b"")

    assert [command.text for command in found.commands] == ["a"]
    assert found.not_plain == "it uses the shell's NewClause"
