import pytest

from graph_agent.toolbox.shfmt import parse_bash
from policy.syntax import Found, walk


def _walk(text: str) -> Found:
    return walk(parse_bash(text), text.encode())


@pytest.mark.parametrize(
    ("text", "stdin"),
    [
        ("sh <<EOF\na b\nEOF", "a b\n"),
        ("sh <<< 'a b'", "a b"),
        ("echo 'a b' | sh", "a b"),
        ("cat x | sh", ""),
        ("sh < x", ""),
    ],
)
def test_what_a_command_is_fed_is_kept_where_it_stands_in_the_text(text: str, stdin: str) -> None:
    assert _walk(text).commands[-1].stdin == stdin


@pytest.mark.parametrize(
    ("text", "moves"),
    [("cd a", ["a"]), ("cd", [None]), ("cd -", [None]), ("cd a/../b", [None]), ("cd $x", [None]), ("popd", [None])],
)
def test_changes_of_folder_are_followed_only_where_their_text_says_where_to(
    text: str, moves: list[str | None]
) -> None:
    assert _walk(text).moves == moves


def test_a_kind_of_node_nobody_knows_makes_a_text_unclear_and_is_looked_into() -> None:
    call = {"Type": "CallExpr", "Args": [{"Parts": [{"Type": "Lit", "Value": "a"}]}]}

    found = walk({"Type": "NewClause", "Inside": [{"Cmd": call}]}, b"")

    assert [command.text for command in found.commands] == ["a"]
    assert found.not_plain == "it uses the shell's NewClause"
