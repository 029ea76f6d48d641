"""Exported threads as values, for tests that change something in them and put a fitting seal under it again."""

import json
from pathlib import Path
from typing import Any

from graph_agent.app.reader import read_database
from graph_agent.config.paths import blob_dir
from graph_agent.ports.thread_file import ContentDigest
from graph_agent.storage.blobs import FileBlobs

__all__ = ["as_history", "export", "reseal"]


def export(database: Path, thread_id: str, *secrets: str) -> str:
    """The text of the file."""
    with read_database(database) as reader:
        lines = reader.export(thread_id, FileBlobs(blob_dir(database)).get, secrets)
        return "".join(f"{line}\n" for line in lines)


def as_history(text: str) -> dict[str, Any]:
    """The file without what an import replaces: folder, owners, status of rewinds, what is still queued."""
    document: dict[str, Any] = json.loads(text)
    del document["end"]
    for row in document["rows"]:
        match row["table"]:
            case "threads":
                row["workspace"] = ""
            case "journal":
                row["owner"] = row["owner"].removeprefix("imported:")
            case "rewinds":
                row["status"] = row["status"].replace("imported", "done")
            case "inbox":
                row["taken_at"] = ""
    return document


def reseal(document: dict[str, Any]) -> str:
    """The document as a file whose seal fits."""
    top = {name: document[name] for name in ("format", "version", "thread_id")}
    seal = ContentDigest()
    for part in (top, *document["rows"], *document["blobs"]):
        seal.add(part)
    end = {"rows": len(document["rows"]), "blobs": len(document["blobs"]), "sha256": seal.text()}
    return json.dumps({**top, "rows": document["rows"], "blobs": document["blobs"], "end": end})
