import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from graph_agent.config.paths import (
    ServerPath,
    blob_dir,
    config_dir,
    data_dir,
    database_path,
    lock_dir,
    locked_folder,
    make_private_folder,
    own_command,
    plain_text,
    read_plain_text,
    replace_text,
)
from graph_agent.errors import ConfigError
from tests.fakes.openai_server import TXT, FakeOpenAI
from tests.scenarios.command import Command

_HOME = {"HOME": "/home/ada"}
_XDG = {**_HOME, "XDG_CONFIG_HOME": "/etc/ada", "XDG_DATA_HOME": "data"}
_OWN = {**_XDG, "GRAPH_AGENT_HOME": "/srv/agent"}


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode_of(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


@pytest.mark.parametrize(
    ("env", "config", "data"),
    [
        (_HOME, "/home/ada/.config/graph-agent", "/home/ada/.local/share/graph-agent"),
        (_XDG, "/etc/ada/graph-agent", "/home/ada/.local/share/graph-agent"),
        (_OWN, "/srv/agent", "/srv/agent/data"),
    ],
    ids=["usual", "xdg, unless it is relative", "a folder of its own"],
)
def test_files_are_kept_in_the_folders_that_the_environment_names(
    env: dict[str, str], config: str, data: str
) -> None:
    assert (config_dir(env), data_dir(env)) == (Path(config), Path(data))
    assert database_path(env) == Path(data) / "graph-agent.db"


def test_the_database_is_named_by_the_flag_before_the_environment_and_that_before_the_users_settings(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.toml").write_text('database = "postgresql://ada:s3cret@db.example/agents"\n')
    own = {"GRAPH_AGENT_HOME": str(tmp_path)}
    env = {**own, "GRAPH_AGENT_DB": "/srv/other.db"}

    assert (database_path(env), database_path(env, "/srv/flag.db")) == (Path("/srv/other.db"), Path("/srv/flag.db"))
    assert str(database_path(own)) == "postgresql://ada@db.example/agents"
    assert str(database_path({**own, "GRAPH_AGENT_DB": ""})) == "postgresql://ada@db.example/agents"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('database = "mysql://db/agents"', "The database mysql://… is a URL of a kind that is not supported"),
        ('database = "postgresql://[db/agents"', "is not a valid URL"),
        ('database = "postgresql://ada:s3/cret@db/agents"', "write @ as %40, / as %2F"),
        ('database = "postgresql://ada:s3#cret@db/agents"', "write @ as %40, / as %2F"),
        ('database = "postgresql://ada:s3?cret@db/agents"', "write @ as %40, / as %2F"),
        ('database = "postgresql:/ada:s3cret@db/agents"', "is not a valid URL. Write postgresql://"),
        ('database = " postgresql://ada:s3cret@db/agents"', "is not a valid URL. Write postgresql://"),
        ('database = "agents.db"', "database = 'agents.db': should be an absolute path"),
        ('database = ""', "database = '': should be a file or a URL"),
        ("database = 3", "database = 3: should be a file or a URL"),
        ('database = "postgresql://db/agents', "is not valid TOML"),
    ],
)
def test_settings_that_name_no_usable_database_are_refused_and_the_file_is_named(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "config.toml").write_text(text)

    with pytest.raises(ConfigError, match=re.escape(said)) as refused:
        database_path({"GRAPH_AGENT_HOME": str(tmp_path)})

    assert str(refused.value).startswith(str(tmp_path / "config.toml"))
    assert not re.search("s3|cret", str(refused.value))


@pytest.mark.parametrize(
    "text", ["", 'status_line = ["folder"]  # no database', '[policy]\ndeny = ["bash(x database)"]']
)
def test_settings_that_name_no_database_leave_it_in_the_data_folder(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)

    assert database_path({"GRAPH_AGENT_HOME": str(tmp_path)}) == tmp_path / "data" / "graph-agent.db"


def test_a_link_to_a_database_stands_for_the_file_so_that_both_ways_lead_to_the_same_locks(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "other" / "real.db"
    (home / "data").mkdir(parents=True)
    (home / "second").symlink_to(file)
    (home / "data" / "graph-agent.db").symlink_to("../second")
    env = {"GRAPH_AGENT_HOME": str(home)}

    assert (database_path(env), database_path(env, str(home / "second"))) == (file.resolve(), file.resolve())


def test_a_server_is_named_by_a_url_and_any_other_kind_of_url_is_refused() -> None:
    url = "postgresql://ada:s3cret@db.example:5433/agents?sslmode=require"
    path = database_path({**_OWN, "GRAPH_AGENT_DB": url})

    assert isinstance(path, ServerPath)
    assert (path.url, str(path)) == (url, "postgresql://ada@db.example:5433/agents?sslmode=require")
    assert blob_dir(path).is_relative_to("/srv/agent/data/servers")
    assert database_path(_OWN, path) is path
    other_user = database_path(_OWN, "postgresql://bob@db.example:5433/agents")
    assert blob_dir(path) == blob_dir(other_user)
    assert blob_dir(path) != blob_dir(database_path(_OWN, "postgresql://ada@db.example:5433/other"))
    for wrong, said in (("mysql://db/agents", "mysql://… is a URL"), ("postgresql://[db/agents", "is not a valid")):
        with pytest.raises(ConfigError, match=said):
            database_path(_OWN, wrong)


def test_blobs_and_locks_are_beside_their_database() -> None:
    database = Path("/srv/other.db")

    assert (blob_dir(database), lock_dir(database)) == (Path("/srv/other.db.blobs"), Path("/srv/other.db.locks"))


def test_a_text_file_is_read_and_a_link_to_one_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("ä\n")
    (tmp_path / "link").symlink_to("file")

    assert [read_plain_text(tmp_path / name) for name in ("file", "link")] == ["ä\n", "ä\n"]


def test_a_pipe_is_refused_at_once_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="it is a pipe, not a file"):
        read_plain_text(tmp_path / "pipe")


@pytest.mark.parametrize(
    "data",
    [
        "ä\nb\n".encode(),
        "\ufeffä\nb\n".encode(),
        "ä\r\nb\r\n".encode(),
        "\ufeffä\nb\n".encode("utf-16-le"),
        "\ufeffä\r\nb\r\n".encode("utf-16-be"),
        "\ufeffä\rb\r".encode("utf-32-le"),
    ],
)
def test_a_file_that_a_person_wrote_is_read_in_every_unicode_encoding(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)

    assert [read_plain_text(tmp_path / "file"), plain_text(data)] == ["ä\nb\n", "ä\nb\n"]


def test_bytes_in_another_encoding_are_refused_or_read_as_the_likely_one_with_a_line_that_says_so(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_bytes(b"caf\xe9\0")

    with pytest.raises(UnicodeDecodeError):
        read_plain_text(tmp_path / "file")
    assert plain_text(b"caf\xe9\0") == "café␀\n[This text is not UTF-8. It was read as iso-8859-1.]"


@pytest.mark.usefixtures("no_umask")
def test_every_folder_it_makes_is_private_whatever_the_umask_and_existing_ones_stay(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    make_private_folder(tmp_path / "a" / "b" / "c")

    made = [tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [mode_of(folder) for folder in made] == ["0o755", *["0o700"] * 3]


@pytest.mark.usefixtures("no_umask")
def test_a_replaced_file_is_private_whatever_the_umask_and_nothing_else_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    with locked_folder(folder):
        replace_text(folder / "a", "one")
        replace_text(folder / "a", "two")

    assert (mode_of(folder), mode_of(folder / "a")) == ("0o700", "0o600")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "two"}


def test_what_cannot_be_replaced_stays_and_no_new_file_is_left(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        replace_text(tmp_path / "folder", "x")

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_of_changes_made_at_once_none_is_lost(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")

    def add() -> None:
        for _ in range(25):
            with locked_folder(tmp_path):
                replace_text(count, str(int(count.read_text()) + 1))

    threads = [Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert count.read_text() == "100"


@pytest.mark.parametrize(
    ("on_path", "folder", "called"),
    [
        ("venv/bin", "elsewhere", "graph-agent"),
        ("linked", "elsewhere", "graph-agent"),
        ("", ".", "venv/bin/graph-agent"),
        ("", "elsewhere", "{root}/venv/bin/graph-agent"),
        ("another", ".", "venv/bin/graph-agent"),
    ],
    ids=["on PATH", "linked from PATH", "below this folder", "in another folder", "another one on PATH"],
)
def test_hints_name_a_command_that_calls_this_program_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: str, folder: str, called: str
) -> None:
    for place in ("venv/bin", "another", "linked", "elsewhere"):
        (tmp_path / place).mkdir(parents=True)
    for place in ("venv/bin", "another"):
        (tmp_path / place / "graph-agent").write_text("#!/bin/sh\n")
        (tmp_path / place / "graph-agent").chmod(0o755)
    (tmp_path / "linked/graph-agent").symlink_to(tmp_path / "venv/bin/graph-agent")
    monkeypatch.setattr("sys.executable", str(tmp_path / "venv/bin/python"))
    monkeypatch.setenv("PATH", str(tmp_path / on_path) if on_path else "/bin")
    monkeypatch.chdir(tmp_path / folder)

    assert own_command() == called.format(root=tmp_path)


def test_a_folder_of_path_that_cannot_be_searched_and_a_folder_that_is_gone_break_no_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    looped = tmp_path / "looped"
    looped.symlink_to(looped)
    monkeypatch.setenv("PATH", f"{looped}:{'x' * 300}:/usr/bin")

    assert own_command().endswith("graph-agent")


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A program that has a thread, and cannot be called by its name."""
    folder = tmp_path_factory.mktemp("used")
    with FakeOpenAI([TXT("done")]) as server:
        command = Command(folder, server.base_url, extra_env={"PATH": "/usr/bin:/bin"})
        assert command("run", "go").returncode == 0
        (command.workspace / "broken.db").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
        yield command


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("threads", "show", "nobody"), "threads list"),
        (("inspect", "nobody"), "threads list"),
        (("calls", "nobody"), "threads list"),
        (("approvals", "approve", "nobody"), "threads list"),
        (("policy", "revoke", "nobody"), "policy list"),
        (("mcp", "test", "nobody"), "mcp add"),
        (("run", "go", "--model", ""), "model list"),
        (("run", "go", "--output", "json", "--model", ""), "model list"),
        (("doctor", "--db", "broken.db"), "doctor --repair"),
        (("threads", "list", "--db", "broken.db"), "doctor --repair"),
        (("threads", "list", "--db", "missing.db"), "chat"),
    ],
)
def test_a_command_that_a_message_recommends_can_be_copied(
    used: Command, words: tuple[str, ...], hint: str
) -> None:
    ended = used(*words)

    said = " ".join(f"{ended.stdout} {ended.stderr}".split())
    own = str(Path(sys.executable).parent / "graph-agent")
    assert f"{own} {hint}" in said
    assert re.findall(rf"(?:`|: |; )graph-agent {hint}", said) == []
