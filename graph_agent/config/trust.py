"""What the user trusts, in one private file: MCP servers by fingerprint, project folders by their files' digests.

Knows neither how a fingerprint is made nor what is in a folder.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graph_agent.config.paths import data_dir, locked_folder, read_plain_text, replace_text
from graph_agent.errors import StorageError

__all__ = ["FolderAnswer", "TrustFile", "trust_file"]


@dataclass(frozen=True, slots=True)
class FolderAnswer:
    """What the user said about a folder, and about which contents of it."""

    trusted: bool
    files: Mapping[str, str] = field(default_factory=dict)
    """Name to SHA-256, in hex: the answer holds for exactly these."""
    turns_on: Sequence[str] = ()
    """What was shown as turned on, to tell later what is new."""
    at: str = ""


def trust_file(env: Mapping[str, str]) -> "TrustFile":
    """The user's own; it lies in the data folder, which no tool may write."""
    return TrustFile(data_dir(env) / "trust.json")


class TrustFile:
    """`{"servers": {fingerprint: {"name", "at"}}, "folders": {path: FolderAnswer}}`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def has_server(self, fingerprint: str) -> bool:
        """Whether exactly this server may be started.

        Raises:
            StorageError: the file is there and cannot be read.
        """
        return fingerprint in self._read()["servers"]

    def has_server_named(self, name: str) -> bool:
        """Whether a server of this name was trusted as it was once configured.

        Raises:
            StorageError: the file is there and cannot be read.
        """
        return any(entry["name"] == name for entry in self._read()["servers"].values())

    def add_server(self, name: str, fingerprint: str, at: str) -> None:
        """Trust it from now on; `at` is an ISO time.

        Raises:
            StorageError: the file cannot be read or written.
        """
        self._change("servers", lambda known: {**known, fingerprint: {"name": name, "at": at}})

    def forget_server(self, name: str) -> None:
        """Withdraw the trust in everything that was trusted under a name.

        Raises:
            StorageError: the file cannot be read or written.
        """
        self._change(
            "servers",
            lambda known: {mark: entry for mark, entry in known.items() if entry.get("name") != name},
        )

    def answer_for(self, folder: Path) -> FolderAnswer | None:
        """What was said about a folder; None where nobody was asked.

        Raises:
            StorageError: the file is there and cannot be read.
        """
        return self.folders().get(str(folder))

    def folders(self) -> Mapping[str, FolderAnswer]:
        """Every folder somebody was asked about.

        Raises:
            StorageError: the file is there and cannot be read.
        """
        return {path: FolderAnswer(**entry) for path, entry in self._read()["folders"].items()}

    def answer(self, folder: Path, said: FolderAnswer) -> None:
        """Keep what the user said.

        Raises:
            StorageError: the file cannot be read or written.
        """
        self._change("folders", lambda known: {**known, str(folder): asdict(said)})

    def forget_folder(self, folder: Path) -> bool:
        """Forget what was said about a folder; whether there was anything.

        Raises:
            StorageError: the file cannot be read or written.
        """
        known = self.answer_for(folder) is not None
        self._change("folders", lambda found: {path: one for path, one in found.items() if path != str(folder)})
        return known

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(read_plain_text(self._path))
        except FileNotFoundError:
            return {"servers": {}, "folders": {}}
        except (OSError, ValueError) as error:
            raise StorageError(f"{self._path} cannot be read: {error}. {_MOVE_IT}") from error
        sections = {name: found.get(name, {}) for name in _SECTIONS} if isinstance(found, dict) else {}
        for name, is_sound in _SECTIONS.items():
            section = sections.get(name)
            if not isinstance(section, dict) or not all(map(is_sound, section.values())):
                raise StorageError(f"{self._path} is no list of what is trusted. {_MOVE_IT}")
        return sections

    def _change(self, section: str, change: Any) -> None:
        try:
            with locked_folder(self._path.parent):
                known = self._read()
                changed = {**known, section: change(known[section])}
                if changed != known:
                    replace_text(self._path, json.dumps(changed, indent=2) + "\n")
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror or error}.") from error


_MOVE_IT = "Move it away and trust your servers and folders again."


def _is_server(entry: Any) -> bool:
    return isinstance(entry, dict) and "name" in entry


def _is_answer(entry: Any) -> bool:
    match entry:
        case {"trusted": bool(), "files": dict(files), "turns_on": list(lines), "at": str()}:
            return len(entry) == 4 and all(isinstance(text, str) for text in (*files, *files.values(), *lines))
        case _:
            return False


_SECTIONS = {"servers": _is_server, "folders": _is_answer}
