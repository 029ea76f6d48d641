"""Check a GGUF file that is to be the local model."""

import os
from dataclasses import dataclass
from pathlib import Path

from graph_agent.config.model_choice import local_label, local_model_problem
from graph_agent.errors import UsageError
from graph_agent.model.local.gguf import Header, KnownModel, file_sha256, find_known_model, read_header

__all__ = ["LocalFile", "inspect_model_file"]


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A checked file."""

    path: Path
    bytes: int
    header: Header
    known: KnownModel | None
    """The known model it is, byte for byte; None if it is another."""

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
            f"{name!r} has the size of {known.name} but different content (SHA-256 {digest}, expected "
            f"{known.sha256}): it is damaged or altered. Download it again, or skip this check with "
            "`config set model.local`."
        )
    if obstacle := local_model_problem(path):
        raise UsageError(f"{name!r} cannot be used: {obstacle}. Nothing was changed.")
    return LocalFile(path, size, header, known)
