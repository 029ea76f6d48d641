import stat
from pathlib import Path

import pytest

from graph_agent.config.trust import FolderAnswer, TrustFile, trust_file
from graph_agent.errors import StorageError

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
