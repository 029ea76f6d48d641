import stat
from pathlib import Path

import pytest

from graph_agent.config.project import (
    PROJECT_CONFIG,
    Project,
    ProjectFile,
    has_project_files,
    instructions_above,
    is_nested,
    nested_instructions,
    repository_above,
)
from graph_agent.config.trust import FolderAnswer, TrustFile, trust_file
from graph_agent.errors import StorageError

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


@pytest.mark.parametrize(
    ("repositories", "files", "root", "names"),
    [
        (["."], [".", "a"], ".", ("../../AGENTS.md", "../AGENTS.md")),
        (["."], ["a/b"], ".", ()),
        ([], ["."], None, ()),
        ([".", "a/b"], ["."], None, ()),
        ([".", "a"], [".", "a"], "a", ("../AGENTS.md",)),
    ],
)
def test_files_of_folders_above_are_found_up_to_the_root_of_the_repository(
    tmp_path: Path, repositories: list[str], files: list[str], root: str | None, names: tuple[str, ...]
) -> None:
    folder = tmp_path / "a" / "b"
    (folder / ".git").mkdir(parents=True)
    for place in repositories:
        (tmp_path / place / ".git").mkdir(exist_ok=True)
        (tmp_path / place / ".git" / "HEAD").touch()
    for place in files:
        _write_instructions(tmp_path / place)

    assert repository_above(folder) == (None if root is None else (tmp_path / root).resolve())
    assert (instructions_above(folder), has_project_files(folder)) == (names, bool(names) or "a/b" in files)


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


_YES = FolderAnswer(trusted=True, files={"AGENTS.md": "ab"}, turns_on=["AGENTS.md: 1 line"], at="2026-01-01")


def test_servers_and_folders_are_remembered_side_by_side_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "data" / "trust.json"
    TrustFile(path).add_server("hub", "mark", "2026-01-01T00:00:00Z")
    TrustFile(path).answer(tmp_path, _YES)

    known = TrustFile(path).has_server("mark"), TrustFile(path).answer_for(tmp_path)
    TrustFile(path).forget_server("hub")
    left = TrustFile(path).has_server("mark"), TrustFile(path).folders()
    forgotten = [TrustFile(path).forget_folder(tmp_path) for _ in range(2)]

    assert (known, left) == ((True, _YES), (False, {str(tmp_path): _YES}))
    assert (forgotten, TrustFile(path).folders()) == ([True, False], {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_lies_in_the_data_folder_that_no_tool_may_write(tmp_path: Path) -> None:
    trust_file({"GRAPH_AGENT_HOME": str(tmp_path)}).answer(tmp_path, _YES)

    assert (tmp_path / "data" / "trust.json").is_file()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"servers": {"a": 1}}',
        '{"folders": {"/": {"trusted": true}}}',
        '{"folders": {"/": {"name": 1}}}',
        '{"folders": {"/": {"trusted": "no", "files": {}, "turns_on": [], "at": ""}}}',
        '{"folders": {"/": {"trusted": true, "files": 3, "turns_on": 4, "at": ""}}}',
        "\x00",
        '{"folders": []}',
    ],
)
def test_a_damaged_file_trusts_nobody_and_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(text)

    with pytest.raises(StorageError, match="trust your servers and folders again"):
        TrustFile(path).has_server("mark")
    with pytest.raises(StorageError, match="trust your servers and folders again"):
        TrustFile(path).answer(tmp_path, _YES)
    assert path.read_text() == text
