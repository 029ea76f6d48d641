from pathlib import Path

from graph_agent.config.project import is_nested, nested_instructions


def _agents(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "AGENTS.md").write_text("x")


def test_files_of_folders_below_are_found_the_nearest_first(tmp_path: Path) -> None:
    for place in ("", "b", "a/c", "a/c/d/e"):
        _agents(tmp_path / place)

    assert nested_instructions(tmp_path) == ("b/AGENTS.md", "a/c/AGENTS.md", "a/c/d/e/AGENTS.md")


def test_what_is_hidden_deep_down_installed_linked_or_a_repository_of_its_own_says_nothing(tmp_path: Path) -> None:
    for place in (".hidden", "node_modules/a", "a/b/c/d/e", "clone"):
        _agents(tmp_path / place)
    (tmp_path / "clone" / ".git").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".hidden")

    assert nested_instructions(tmp_path) == ()


def test_only_so_many_are_looked_for(tmp_path: Path) -> None:
    for number in range(40):
        _agents(tmp_path / f"p{number:02}")

    assert nested_instructions(tmp_path) == tuple(f"p{number:02}/AGENTS.md" for number in range(30))


def test_a_folder_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert nested_instructions(tmp_path / "none") == ()


def test_only_a_file_below_a_folder_is_nested() -> None:
    names = ("AGENTS.md", "a/AGENTS.md", "a/CONTEXT.md", ".graph-agent/commands/AGENTS.md")

    assert [is_nested(name) for name in names] == [False, True, False, False]
