import pytest

from tools.registry import apply_aliases, resolve_tool_name, unknown_tool_message

_KNOWN = ["read_file", "write_file", "edit_file", "bash", "grep", "mcp__Files__Read"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("bash", "bash"),
        (" bash\n", "bash"),
        ("Bash", "bash"),
        ("Read", "read_file"),
        ("write", "write_file"),
        ("EDIT", "edit_file"),
        ("mcp__files__read", "mcp__Files__Read"),
        ("search_files", None),
        ("", None),
    ],
)
def test_names_are_found_whatever_their_case_and_white_space(written: str, meant: str | None) -> None:
    assert resolve_tool_name(written, _KNOWN) == meant


def test_an_alias_without_its_tool_finds_nothing() -> None:
    assert resolve_tool_name("read", ["bash"]) is None


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("bahs", "Did you mean bash?"),
        ("list_file", "Did you mean"),
        ("xyz", "'xyz'. The tools are: bash,"),
        ("search_files", "Did you mean grep?"),
        ("searchFiles", "Did you mean grep?"),
        ("run_in_terminal", "Did you mean bash?"),
        ("str_replace_editor", "Did you mean edit_file?"),
        ("read_files", "Did you mean read_file"),
    ],
)
def test_an_unknown_name_gets_near_ones_and_the_list(written: str, hint: str) -> None:
    told = unknown_tool_message(written, _KNOWN)

    assert hint in told
    assert "bash, edit_file, grep, mcp__Files__Read, read_file, write_file" in told


def test_argument_aliases_count_where_the_schema_lacks_the_name() -> None:
    aliases = {"path": "file_path"}

    assert apply_aliases({"path": "a", "x": 1}, aliases, ["file_path"]) == {"file_path": "a", "x": 1}
    assert apply_aliases({"path": "a"}, aliases, ["path", "file_path"]) == {"path": "a"}
    assert apply_aliases({"path": "a", "file_path": "b"}, aliases, ["file_path"]) == {
        "path": "a",
        "file_path": "b",
    }
