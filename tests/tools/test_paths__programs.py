import os
from pathlib import Path

import pytest

from tools.paths import find_program


@pytest.mark.parametrize("entry", [".", "", "here", "./here"])
def test_a_program_in_the_folder_one_stands_in_is_never_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    for folder in (tmp_path, tmp_path / "here", tmp_path / "machine"):
        folder.mkdir(exist_ok=True)
        (folder / "tell").write_text("#!/bin/sh\n")
        (folder / "tell").chmod(0o755)
    monkeypatch.chdir(tmp_path)

    monkeypatch.setenv("PATH", entry)
    alone = find_program("tell")
    monkeypatch.setenv("PATH", os.pathsep.join((entry, str(tmp_path / "machine"))))

    assert (alone, find_program("tell")) == (None, str(tmp_path / "machine" / "tell"))
