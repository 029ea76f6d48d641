from pathlib import Path

from graph_agent.config.paths import blob_dir, config_dir, data_dir, database_path, lock_dir


def test_without_settings_the_files_lie_in_the_usual_folders_of_the_home() -> None:
    env = {"HOME": "/home/ada"}

    assert (config_dir(env), data_dir(env), database_path(env)) == (
        Path("/home/ada/.config/graph-agent"),
        Path("/home/ada/.local/share/graph-agent"),
        Path("/home/ada/.local/share/graph-agent/graph-agent.db"),
    )


def test_the_xdg_folders_are_honoured_unless_they_are_relative() -> None:
    env = {"HOME": "/home/ada", "XDG_CONFIG_HOME": "/etc/ada", "XDG_DATA_HOME": "data"}

    assert (config_dir(env), data_dir(env)) == (
        Path("/etc/ada/graph-agent"),
        Path("/home/ada/.local/share/graph-agent"),
    )


def test_one_folder_of_its_own_replaces_both() -> None:
    env = {"HOME": "/home/ada", "XDG_CONFIG_HOME": "/etc/ada", "GRAPH_AGENT_HOME": "/srv/agent"}

    assert (config_dir(env), data_dir(env)) == (Path("/srv/agent"), Path("/srv/agent/data"))


def test_the_database_is_named_by_the_flag_before_the_environment() -> None:
    env = {"HOME": "/home/ada", "GRAPH_AGENT_HOME": "/srv/agent", "GRAPH_AGENT_DB": "/srv/other.db"}

    assert (database_path(env), database_path(env, "/srv/flag.db")) == (Path("/srv/other.db"), Path("/srv/flag.db"))


def test_a_link_to_a_database_stands_for_the_file_so_that_both_ways_lead_to_the_same_locks(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "other" / "real.db"
    (home / "data").mkdir(parents=True)
    (home / "second").symlink_to(file)
    (home / "data" / "graph-agent.db").symlink_to("../second")
    env = {"GRAPH_AGENT_HOME": str(home)}

    assert (database_path(env), database_path(env, str(home / "second"))) == (file.resolve(), file.resolve())


def test_blobs_and_locks_lie_beside_their_database() -> None:
    database = Path("/srv/other.db")

    assert (blob_dir(database), lock_dir(database)) == (Path("/srv/other.db.blobs"), Path("/srv/other.db.locks"))
