"""Copies that have their name only once they are whole: killed or failed halfway, none of that name is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from graph_agent.store.files import create_private_file, sync_file, sync_folder

__all__ = ["written_whole"]


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A private draft of a database beside the target, whose name it takes, on the disk, as the block ends.

    What a killed process leaves of one is named `TARGET.….draft`, and its journal after that.
    """
    draft = target.with_name(f"{target.name}.{uuid4().hex}.draft")
    try:
        create_private_file(draft)
        yield draft
        sync_file(draft)
        draft.replace(target)
        sync_folder(target.parent)
    finally:
        for end in ("", "-journal"):
            draft.with_name(f"{draft.name}{end}").unlink(missing_ok=True)
