"""Which file system a folder is on, as the kernel lists them. Linux only; elsewhere nothing is known."""

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["Mount", "mount_of"]

_ESCAPED = re.compile(r"\\([0-7]{3})")
_LIST = Path("/proc/self/mountinfo")
_NETWORK = (
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "davfs",
    "gfs2",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "ocfs2",
    "smb",
)
"""Beginnings of the kinds that several machines may see at once, or that another one keeps."""
_FUSE = ("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.davfs", "fuse.nfs")


class Mount(NamedTuple):
    """A file system and where it is mounted."""

    place: Path
    kind: str

    @property
    def is_network(self) -> bool:
        """Whether it is another machine's."""
        return self.kind.startswith((*_NETWORK, *_FUSE))


def mount_of(folder: Path, listed: Path = _LIST) -> Mount | None:
    """The file system of a folder; None where it cannot be told."""
    try:
        lines = listed.read_text(encoding="utf-8", errors="replace").splitlines()
        real = folder.resolve()
    except OSError:
        return None
    found = [mount for mount in map(_mount, lines) if mount is not None and real.is_relative_to(mount.place)]
    # Of several at one place the last one hides the others.
    return max(reversed(found), key=lambda mount: len(mount.place.parts), default=None)


def _mount(line: str) -> Mount | None:
    """A line of the list: fields, of which the fifth is the place, a lone dash, the kind."""
    fields, _, about = line.partition(" - ")
    parts, kind = fields.split(), about.split()
    if len(parts) < 5 or not kind:
        return None
    # Blanks and the like stand there as their number in base eight.
    place = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), parts[4])
    return Mount(Path(place), kind[0])
