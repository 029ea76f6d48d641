"""Where the programs of the machine are that the agent itself starts. Never in the folder that is worked in."""

import os
import shutil

__all__ = ["find_program"]


def find_program(name: str, path: str | None = None) -> str | None:
    """The first of this name on PATH, or on another such list; None where there is none.

    Entries that mean a folder relative to wherever one stands are passed over: what lies in a repository
    must not be what the agent runs.
    """
    entries = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, entries)))
