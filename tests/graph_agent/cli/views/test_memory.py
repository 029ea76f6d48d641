import json
import sys
from pathlib import Path
from stat import S_IMODE

import pytest

from graph_agent.cli.views.memory import edit_memory, show_memory
from graph_agent.errors import StorageError, UsageError


@pytest.fixture
def context_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("VISUAL", raising=False)
    return tmp_path / "home" / "CONTEXT.md"


def editor(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    program = folder / "an editor.py"
    program.write_text(f"import sys\npath = sys.argv[1]\n{body}\n", encoding="utf-8")
    monkeypatch.setenv("EDITOR", f"{sys.executable} '{program}'")


def test_an_absent_file_is_created_privately_and_shown_once_it_says_something(
    context_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    editor(monkeypatch, tmp_path, "open(path, 'a').write('I like tabs\\x1b.\\n')")

    edit_memory()
    show_memory(as_json=False)

    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("I like tabs\\x1b.\n", f"{context_file}\n")
    assert [S_IMODE(path.stat().st_mode) for path in (context_file, context_file.parent)] == [0o600, 0o700]


def test_nothing_remembered_says_how_to_begin(context_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_memory(as_json=False)
    show_memory(as_json=True)

    line, _, rest = capsys.readouterr().out.partition("\n")
    assert line == f"Memory is empty. Edit {context_file} with: graph-agent memory edit"
    assert json.loads(rest) == {"path": str(context_file), "exists": False, "text": ""}


def test_an_editor_that_fails_or_is_missing_is_named(
    context_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(monkeypatch, tmp_path, "sys.exit(3)")
    with pytest.raises(StorageError, match="exited with code 3"):
        edit_memory()

    monkeypatch.setenv("EDITOR", str(tmp_path / "no-such-editor"))
    with pytest.raises(UsageError, match="Set EDITOR to another"):
        edit_memory()


def test_without_a_terminal_no_editor_is_started_that_nobody_named(
    context_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(UsageError, match="No terminal for an editor"):
        edit_memory()


def test_a_folder_in_its_place_is_a_clear_error(context_file: Path) -> None:
    context_file.mkdir(parents=True)

    with pytest.raises(StorageError, match=r"Cannot read .*CONTEXT\.md"):
        show_memory(as_json=False)
    with pytest.raises(StorageError, match=r"Cannot write .*CONTEXT\.md"):
        edit_memory()
