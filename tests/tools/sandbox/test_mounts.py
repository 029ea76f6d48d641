from pathlib import Path

from tools.sandbox.mounts import Mount, in_order


def test_outer_folders_come_first_and_of_one_path_only_the_strictest_stays() -> None:
    home, inner, key = Path("/home"), Path("/home/work"), Path("/home/work/key")
    mounts = [
        Mount(key, "read"),
        Mount(inner, "write"),
        Mount(key, "empty"),
        Mount(home, "empty"),
        Mount(key, "write"),
    ]

    assert list(in_order(mounts)) == [Mount(home, "empty"), Mount(inner, "write"), Mount(key, "empty")]
