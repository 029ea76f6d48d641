"""Whether the local model that is configured can be used at all. Looks at its first bytes, and loads nothing."""

import importlib.util
from pathlib import Path

from graph_agent.config.paths import odd_kind

__all__ = ["INSTALL", "LOCAL_TAG", "MAGIC", "local_label", "local_obstacle"]

MAGIC = b"GGUF"
"""What every file of the format begins with."""
INSTALL = "pip install '.[local]' in the checkout"
LOCAL_TAG = "(local, limited)"
"""Stands in the label of every local model."""

_RUNTIME = "xllamacpp"


def local_label(path: Path) -> str:
    """What the status line calls the model in this file."""
    return f"{path.stem} {LOCAL_TAG}"


def local_obstacle(path: Path) -> str:
    """What is in the way of using the model in this file, with what to do; empty where nothing is."""
    if kind := odd_kind(path.expanduser()):
        return f"{str(path)!r} is {kind}, no file; `graph-agent model local FILE` names another"
    try:
        with path.expanduser().open("rb") as file:
            begins = file.read(len(MAGIC))
    except OSError as error:
        return f"{str(path)!r} cannot be read ({error.strerror}); `graph-agent model local FILE` names another"
    if begins != MAGIC:
        return f"{str(path)!r} is no GGUF file; `graph-agent model local FILE` names another"
    if importlib.util.find_spec(_RUNTIME) is None:
        return f"its runtime is not installed: {INSTALL}"
    return ""
