import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
import tomlkit

from graph_agent.config.edit import change_document, set_in_table, set_value, unset_value
from graph_agent.config.sources import load_settings
from graph_agent.errors import ConfigError, UsageError

OLD = """\
# my settings
mode = "plan"  # careful

[policy]
# never
deny = ["bash(rm *)"]
"""


def env_of(folder: Path) -> dict[str, str]:
    return {"GRAPH_AGENT_HOME": str(folder)}


def test_comments_and_everything_else_stay_and_the_file_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(OLD, encoding="utf-8")
    path.chmod(0o644)

    assert set_value("mode", "acceptEdits", env_of(tmp_path)) == path

    assert path.read_text(encoding="utf-8") == OLD.replace('"plan"', '"acceptEdits"')
    assert S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("max_steps", "12", 12),
        ("model.name", "4", "4"),
        ("model.name", "gpt-4o: mini", "gpt-4o: mini"),
        ("model.name", '"quoted"', "quoted"),
        ("policy.allow", '["bash(ls *)", "grep"]', ["bash(ls *)", "grep"]),
        ("policy.deny", '[{rule = "rm", match = ["rm x"]}]', [{"rule": "rm", "match": ["rm x"]}]),
        ("policy.allow", '["ls", {rule = "grep"}]', ["ls", {"rule": "grep"}]),
        ("model.headers", '{X-A = "b"}', {"X-A": "b"}),
        ("model.timeout_s", "1.5", 1.5),
    ],
)
def test_a_text_becomes_the_value_of_the_kind_that_the_key_takes(
    tmp_path: Path, key: str, text: str, value: Any
) -> None:
    path = set_value(key, text, env_of(tmp_path / "new"))

    section, _, name = key.rpartition(".")
    written = tomllib.loads(path.read_text(encoding="utf-8"))
    assert (written[section] if section else written)[name] == value
    load_settings(env_of(tmp_path / "new"))


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("max_steps", "0", "max_steps = 0: Input should be greater than or equal to 1"),
        ("mode", "yolo", "mode = 'yolo': Choose one of default"),
        ("mode", "bypassPermissions", "not accepted from a file"),
        ("model.base_url", "host/v1", "should be an address that starts with http"),
    ],
)
def test_an_invalid_value_changes_nothing(tmp_path: Path, key: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        set_value(key, text, env_of(tmp_path))

    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_key_and_a_file_that_is_no_toml_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("mode = ", encoding="utf-8")

    with pytest.raises(UsageError, match=r"No setting is named 'model\.nam'\. Did you mean 'model\.name'"):
        set_value("model.nam", "x", env_of(tmp_path))
    with pytest.raises(ConfigError, match="is not valid TOML"):
        set_value("model.name", "x", env_of(tmp_path))
    assert path.read_text(encoding="utf-8") == "mode = "


def test_a_linked_file_is_changed_behind_its_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(OLD, encoding="utf-8")
    (tmp_path / "config.toml").symlink_to(real)

    set_value("max_steps", "3", env_of(tmp_path))

    assert (tmp_path / "config.toml").is_symlink()
    assert "max_steps = 3" in real.read_text(encoding="utf-8")


def test_of_values_set_at_once_none_is_lost(tmp_path: Path) -> None:
    keys = {"model.name": "m", "max_steps": "3", "mode": "plan", "model.stream": "off", "model.timeout_s": "9.0"}

    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda item: set_value(item[0], item[1], env_of(tmp_path)), keys.items()))

    settings = load_settings(env_of(tmp_path))
    assert set(settings.origins) == set(keys)


def test_a_key_is_removed_and_everything_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(OLD, encoding="utf-8")

    for key in ("mode", "policy.ask", "model.local"):
        assert unset_value(key, env_of(tmp_path)) == path

    assert path.read_text(encoding="utf-8") == OLD.replace('mode = "plan"  # careful\n', "")


def test_keys_of_a_models_own_table_are_set_and_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# top\n[models.fast]\nname = 'b' # small\n[policy]\nask = []\n", encoding="utf-8")

    set_in_table(("models", "fast"), {"stream": "off"}, env_of(tmp_path))
    set_in_table(("models", "a.b"), {"images": "off"}, env_of(tmp_path))

    text = path.read_text(encoding="utf-8")
    assert ("# top" in text, "name = 'b' # small" in text) == (True, True)
    models = tomllib.loads(text)["models"]
    assert models == {"fast": {"name": "b", "stream": "off"}, "a.b": {"images": "off"}}


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
