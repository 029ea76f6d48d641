from pathlib import Path

from graph_agent.config.project import (
    PROJECT_CONFIG,
    Project,
    ProjectFile,
    has_project_files,
    is_nested,
    nested_instructions,
)

_FILES = (
    ProjectFile(PROJECT_CONFIG, "aa", "mode = 'plan'"),
    ProjectFile("AGENTS.md", "bb", "Use tabs.\n"),
    ProjectFile("CONTEXT.md", "cc", " \n"),
)


def test_only_what_counts_tells_the_model_anything() -> None:
    told = {
        trust: Project(Path("/p"), _FILES, trust=trust).instructions for trust in ("once", "trusted", "changed")
    }

    assert told == {"once": "## AGENTS.md\n\nUse tabs.", "trusted": "## AGENTS.md\n\nUse tabs.", "changed": ""}


def test_a_project_knows_its_settings_and_what_its_files_were() -> None:
    project = Project(Path("/p"), _FILES)

    assert (project.config, project.config_path) == (_FILES[0], Path("/p/.graph-agent/config.toml"))
    assert project.digests == {PROJECT_CONFIG: "aa", "AGENTS.md": "bb", "CONTEXT.md": "cc"}


def test_a_quick_look_sees_links_that_lead_nowhere_and_files_of_folders_below(tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    _write_instructions(tmp_path / "below" / "web")
    before = has_project_files(tmp_path / "linked")
    (tmp_path / "linked" / "AGENTS.md").symlink_to("nowhere")

    found = [has_project_files(tmp_path / name) for name in ("linked", "below")]

    assert (before, found) == (False, [True, True])


def test_a_file_of_a_folder_below_says_what_it_is_about_and_a_long_one_only_that_it_is_to_be_read() -> None:
    files = (
        _FILES[1],
        ProjectFile("web/AGENTS.md", "dd", "No jQuery.\n"),
        ProjectFile("a/b/AGENTS.md", "ee", "x" * 8_000),
    )

    told = Project(Path("/p"), files, trust="trusted").instructions

    assert told.split("\n\n")[2:] == [
        "## web/AGENTS.md, for files below web/",
        "No jQuery.",
        "## a/b/AGENTS.md, for files below a/b/",
        "Read this file (8000 characters) before you work on files there.",
    ]
    assert Project(Path("/p"), files, trust="untrusted").instructions == ""


def _write_instructions(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "AGENTS.md").write_text("x")


def test_files_of_folders_below_are_found_the_nearest_first(tmp_path: Path) -> None:
    for place in ("", "b", "a/c", "a/c/d/e"):
        _write_instructions(tmp_path / place)

    assert nested_instructions(tmp_path) == ("b/AGENTS.md", "a/c/AGENTS.md", "a/c/d/e/AGENTS.md")


def test_what_is_hidden_deep_down_installed_linked_or_a_repository_of_its_own_says_nothing(tmp_path: Path) -> None:
    for place in (".hidden", "node_modules/a", "a/b/c/d/e", "clone"):
        _write_instructions(tmp_path / place)
    (tmp_path / "clone" / ".git").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".hidden")

    assert nested_instructions(tmp_path) == ()


def test_only_so_many_are_looked_for(tmp_path: Path) -> None:
    for number in range(40):
        _write_instructions(tmp_path / f"p{number:02}")

    assert nested_instructions(tmp_path) == tuple(f"p{number:02}/AGENTS.md" for number in range(30))


def test_a_folder_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert nested_instructions(tmp_path / "none") == ()


def test_only_a_file_below_a_folder_is_nested() -> None:
    names = ("AGENTS.md", "a/AGENTS.md", "a/CONTEXT.md", ".graph-agent/commands/AGENTS.md")

    assert [is_nested(name) for name in names] == [False, True, False, False]
