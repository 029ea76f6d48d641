"""What the user trusts, in one private file: MCP servers by fingerprint, folders by digests of their files."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graph_agent.config.paths import data_dir, locked_folder, read_plain_text, replace_text
from graph_agent.errors import StorageError

__all__ = ["FolderAnswer", "TrustFile", "trust_file"]


@dataclass(frozen=True, slots=True)
class FolderAnswer:
    """The user's decision about a folder, and about which contents of it."""

    trusted: bool
    files: Mapping[str, str] = field(default_factory=dict)
    """Name to SHA-256, in hex: the decision is valid for exactly these."""
    turns_on: Sequence[str] = ()
    """What was shown as turned on, to show later what is new."""
    at: str = ""


def trust_file(env: Mapping[str, str]) -> "TrustFile":
    """The user's own; it is in the data folder, which no tool may write."""
    return TrustFile(data_dir(env) / "trust.json")


class TrustFile:
    """`{"servers": {fingerprint: {"name", "at"}}, "folders": {path: FolderAnswer}}`.

    Every method raises StorageError if the file is there and cannot be read, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def has_server(self, fingerprint: str) -> bool:
        """Whether exactly this server may be started."""
        return fingerprint in self._read()["servers"]

    def has_server_named(self, name: str) -> bool:
        """Whether a server of this name was trusted as it was once configured."""
        return any(entry["name"] == name for entry in self._read()["servers"].values())

    def add_server(self, name: str, fingerprint: str, at: str) -> None:
        """Trust it from now on; `at` is an ISO time."""
        self._change("servers", lambda known: {**known, fingerprint: {"name": name, "at": at}})

    def forget_server(self, name: str) -> None:
        """Revoke the trust in everything that was trusted under a name."""
        self._change(
            "servers", lambda known: {mark: entry for mark, entry in known.items() if entry.get("name") != name}
        )

    def answer_for(self, folder: Path) -> FolderAnswer | None:
        """The decision about a folder; None if there is none."""
        return self.folders().get(str(folder))

    def folders(self) -> Mapping[str, FolderAnswer]:
        """Every folder that was decided on."""
        return {path: FolderAnswer(**entry) for path, entry in self._read()["folders"].items()}

    def answer(self, folder: Path, said: FolderAnswer) -> None:
        """Store the user's decision."""
        self._change("folders", lambda known: {**known, str(folder): asdict(said)})

    def forget_folder(self, folder: Path) -> bool:
        """Forget the decision about a folder; False if there was none."""
        known = self.answer_for(folder) is not None
        self._change("folders", lambda found: {path: one for path, one in found.items() if path != str(folder)})
        return known

    def _read(self) -> dict[str, dict[str, Any]]:
        advice = "Move it away and trust your servers and folders again."
        try:
            found = json.loads(read_plain_text(self._path))
        except FileNotFoundError:
            return {name: {} for name in _SECTIONS}
        except (OSError, ValueError) as error:
            raise StorageError(f"{self._path} cannot be read: {error}. {advice}") from error
        sections = {name: found.get(name, {}) for name in _SECTIONS} if isinstance(found, dict) else {}
        for name, is_valid in _SECTIONS.items():
            section = sections.get(name)
            if not isinstance(section, dict) or not all(map(is_valid, section.values())):
                raise StorageError(f"{self._path} is no list of what is trusted. {advice}")
        return sections

    def _change(self, section: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        try:
            with locked_folder(self._path.parent):
                known = self._read()
                changed = {**known, section: change(known[section])}
                if changed != known:
                    replace_text(self._path, json.dumps(changed, indent=2) + "\n")
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror or error}.") from error


def _is_answer(entry: Any) -> bool:
    match entry:
        case {"trusted": bool(), "files": dict(files), "turns_on": list(lines), "at": str()}:
            return len(entry) == 4 and all(isinstance(text, str) for text in (*files, *files.values(), *lines))
        case _:
            return False


_SECTIONS: Mapping[str, Callable[[Any], bool]] = {
    "servers": lambda entry: isinstance(entry, dict) and "name" in entry,
    "folders": _is_answer,
}
"""The sections of the file, and what makes an entry valid."""
