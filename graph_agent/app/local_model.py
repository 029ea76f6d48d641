"""Set up a GGUF file as the local model, or remove it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graph_agent.config.edit import set_value, unset_value
from graph_agent.config.model_choice import ModelChoice, choose_model, local_label, local_model_problem
from graph_agent.config.sources import load_settings
from graph_agent.errors import UsageError
from graph_agent.model.local.gguf import Header, KnownModel, file_sha256, find_known_model, read_header

__all__ = ["LocalFile", "current_choice", "inspect_model_file", "remove_local_model", "use_local_model"]


@dataclass(frozen=True, slots=True)
class LocalFile:
    """What was found out about a file."""

    path: Path
    bytes: int
    header: Header
    known: KnownModel | None
    """The known model it is, byte for byte; None where it is another."""

    @property
    def label(self) -> str:
        """What the status line will call it."""
        return local_label(self.path)


def inspect_model_file(name: str) -> LocalFile:
    """Look at a file that is to be the local model.

    Raises:
        UsageError: it is none, is damaged or altered, or its runtime is not installed.
    """
    path = Path(os.path.abspath(Path(name).expanduser()))  # noqa: PTH100 - a link stays the user's own name for it
    header = read_header(path)
    size = path.stat().st_size
    known = find_known_model(size)
    if known is not None and (digest := file_sha256(path)) != known.sha256:
        raise UsageError(
            f"{name!r} has the size of {known.name} but another content (SHA-256 {digest}, expected "
            f"{known.sha256}): it is damaged or altered. Fetch it again; `config set model.local` checks nothing."
        )
    if obstacle := local_model_problem(path):
        raise UsageError(f"{name!r} cannot be used: {obstacle}. Nothing was changed.")
    return LocalFile(path, size, header, known)


def use_local_model(file: LocalFile, environment: Mapping[str, str]) -> Path:
    """Write the file into the user's settings; returns theirs.

    Raises:
        ConfigError: the settings cannot be written.
    """
    return set_value("model.local", str(file.path), environment)


def remove_local_model(environment: Mapping[str, str]) -> Path:
    """Take the local model out of the user's settings; returns theirs.

    Raises:
        ConfigError: the settings cannot be written.
    """
    return unset_value("model.local", environment)


def current_choice(environment: Mapping[str, str]) -> ModelChoice:
    """Which model answers with the settings as they are now.

    Raises:
        ConfigError: the settings cannot be read.
    """
    return choose_model(load_settings(environment))
