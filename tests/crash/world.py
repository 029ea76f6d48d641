"""The world outside the product: a workspace, a database, and logs that survive every kill.

What the checker knows, it knows from here: effects are lines that commands append; what the person was asked and
answered, and what the model was asked, are lines written and synced before anything is done about them.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["World"]


@dataclass(frozen=True)
class World:
    """One trial's folder."""

    folder: Path

    @property
    def database(self) -> Path:
        """The product's database."""
        return self.folder / "home" / "graph-agent.db"

    @property
    def workspace(self) -> Path:
        """Where the tools work."""
        return self.folder / "workspace"

    @property
    def port(self) -> int:
        """Where its web site listens, in a scene that has one."""
        return int((self.folder / "port").read_text())

    def create(self) -> None:
        """Lay the folder down."""
        self.workspace.mkdir(parents=True)
        self.database.parent.mkdir()
        (self.workspace / "read.txt").write_text("something to read\n")
        (self.workspace / "note").write_text('#!/bin/sh\necho "$1" >> effects\n')
        (self.workspace / "note").chmod(0o700)

    def note(self, kind: str, **facts: Any) -> None:
        """Append a line to the log, on disk when this returns."""
        line = json.dumps({"kind": kind, "pid": os.getpid(), **facts}) + "\n"
        descriptor = os.open(self.folder / "log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def notes(self, *kinds: str) -> list[dict[str, Any]]:
        """The lines of these kinds, oldest first."""
        log = self.folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [note for note in map(json.loads, lines) if note["kind"] in kinds]

    def runs(self) -> list[str]:
        """Markers of the commands that ran, in order, once per run; read from the effects themselves."""
        effects = self.workspace / "effects"
        return effects.read_text().split() if effects.exists() else []
