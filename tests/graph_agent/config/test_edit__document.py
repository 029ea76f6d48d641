from pathlib import Path

import pytest
import tomlkit

from graph_agent.config.edit import change_document
from graph_agent.errors import ConfigError


def test_a_file_that_is_not_there_yet_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"

    change_document(path, lambda before: f"{before}x = 1\n")
    change_document(path, lambda before: f"{before}y = 2\n")

    assert (path.read_text(), path.stat().st_mode & 0o777) == ("x = 1\ny = 2\n", 0o600)


@pytest.mark.parametrize("content", [b"x = [", b"\xff"])
def test_what_is_no_toml_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)

    with pytest.raises(ConfigError, match="is not valid TOML"):
        change_document(path, lambda before: tomlkit.parse(before).as_string())

    assert path.read_bytes() == content
