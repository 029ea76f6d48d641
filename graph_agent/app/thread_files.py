"""Export a thread to a file that `threads import` reads, also while others write."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from graph_agent.app.reader import read_database
from graph_agent.app.toolset import known_secrets
from graph_agent.config.paths import blob_dir
from graph_agent.storage.blobs import FileBlobs

__all__ = ["open_export"]


@contextmanager
def open_export(database: Path, text: str, here: str | None) -> Iterator[Iterator[str]]:
    """The lines of the file about the thread that the text names, without the secrets that are known here.

    Raises:
        UnknownId: nothing fits the text, or several ids do.
        NothingYet: there is no database.
        UsageError: a rewind of the thread was interrupted.
    """
    with read_database(database) as reader:
        thread_id = reader.resolve(text, here, ("thread", "checkpoint")).thread_id
        blobs, secrets = FileBlobs(blob_dir(database)), known_secrets(os.environ)
        with closing(reader.export(thread_id, blobs.get, secrets)) as lines:
            yield lines
