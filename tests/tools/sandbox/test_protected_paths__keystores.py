from pathlib import Path

from tools.sandbox.protected_paths import key_stores


def test_stores_that_are_there_are_named_as_what_they_really_are(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / ".ssh").symlink_to("dotfiles")
    (tmp_path / "config" / "gh").mkdir(parents=True)
    (tmp_path / ".gitconfig").touch()

    found = key_stores(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "config")})

    here = [path for path in found if path.is_relative_to(tmp_path)]
    assert here == [tmp_path / "dotfiles", tmp_path / "config" / "gh"]
