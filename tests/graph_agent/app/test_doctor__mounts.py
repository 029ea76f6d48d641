from pathlib import Path

import pytest

from graph_agent.app.doctor import Mount, mount_of

_LIST = """\
21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
35 21 0:31 / /mnt/a\\040b rw,nosuid shared:7 - nfs4 server:/a rw
36 35 0:32 / /mnt/a\\040b/deep rw - tmpfs tmpfs rw
37 21 0:33 / /mnt/over rw - ext4 /dev/sdb rw
38 21 0:34 / /mnt/over rw - fuse.sshfs me@there rw
not a line of a mount list
"""


@pytest.mark.parametrize(
    ("folder", "place", "kind", "is_network"),
    [
        ("/home/me", "/", "ext4", False),
        ("/mnt/a b/data", "/mnt/a b", "nfs4", True),
        ("/mnt/a b/deep/er", "/mnt/a b/deep", "tmpfs", False),
        ("/mnt/over", "/mnt/over", "fuse.sshfs", True),
    ],
)
def test_the_innermost_and_latest_mount_is_the_one_a_folder_is_on(
    tmp_path: Path, folder: str, place: str, kind: str, *, is_network: bool
) -> None:
    listed = tmp_path / "mountinfo"
    listed.write_text(_LIST)

    found = mount_of(Path(folder), listed)

    assert (found, found is not None and found.is_network) == (Mount(Path(place), kind), is_network)


def test_where_the_kernel_lists_nothing_nothing_is_known(tmp_path: Path) -> None:
    assert mount_of(tmp_path, tmp_path / "none") is None
