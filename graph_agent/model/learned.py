"""What endpoints have shown that they take, kept in a small file for later processes. Losing it costs a request."""

import json
import logging
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from graph_agent.config.choice import shown_url
from graph_agent.config.paths import odd_kind
from graph_agent.config.writing import alone, replace_text
from graph_agent.model.dialect import Dialect

__all__ = ["LearnedDialects"]

_log = logging.getLogger(__name__)
_MOST = 200
"""Models that are remembered; the one learned longest ago goes first."""
_LARGEST = 1_000_000
_NAMES = tuple(item.name for item in fields(Dialect))


@dataclass(frozen=True, slots=True)
class LearnedDialects:
    """By address and model; only what differs from what every endpoint is first taken for."""

    path: Path | None = None
    """None remembers nothing."""

    def of(self, url: str, model: str) -> Dialect:
        """What is known of this model; what nobody learned is as usual."""
        return _dialect(self._read().get(_key(url, model)))

    def keep(self, url: str, model: str, dialect: Dialect) -> None:
        """Remember it. A file that cannot be written is no reason to stop: it is learned again."""
        if self.path is None:
            return
        try:
            with alone(self.path.parent):
                known = self._read()
                known.pop(_key(url, model), None)
                if differing := _differing(dialect):
                    known[_key(url, model)] = differing
                newest = dict(list(known.items())[-_MOST:])
                replace_text(self.path, json.dumps(newest, indent=1, ensure_ascii=False) + "\n")
        except OSError:
            _log.warning("what %s takes could not be written to %s", model, self.path, exc_info=True)

    def _read(self) -> dict[str, Any]:
        path = self.path
        if path is None or odd_kind(path):
            return {}
        try:
            if path.stat().st_size > _LARGEST:
                return {}
            read = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}


def _key(url: str, model: str) -> str:
    return f"{model} @ {shown_url(url)}"


def _differing(dialect: Dialect) -> dict[str, bool]:
    usual = asdict(Dialect())
    return {name: value for name, value in asdict(dialect).items() if value != usual[name]}


def _dialect(known: Any) -> Dialect:
    told = known if isinstance(known, dict) else {}
    return Dialect(**{name: told[name] for name in _NAMES if isinstance(told.get(name), bool)})
