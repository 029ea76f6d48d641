from pathlib import Path

from graph_agent.config.project import PROJECT_CONFIG, Project, ProjectFile, has_project_files

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


def test_a_quick_look_sees_files_and_links_that_lead_nowhere(tmp_path: Path) -> None:
    before = has_project_files(tmp_path)
    (tmp_path / "AGENTS.md").symlink_to("nowhere")

    assert (before, has_project_files(tmp_path)) == (False, True)


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


def test_a_quick_look_sees_a_file_of_a_folder_below(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "AGENTS.md").write_text("No jQuery.")

    assert has_project_files(tmp_path)
