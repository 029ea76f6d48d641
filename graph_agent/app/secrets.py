"""Which texts must not leave this machine with a thread: the keys that the settings and the environment hold."""

import re
from collections.abc import Iterator, Mapping

from graph_agent.config.load import load_settings
from graph_agent.config.settings import Settings
from graph_agent.errors import ConfigError

__all__ = ["known_secrets"]

_NAMED_SO = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_SHORTEST = 8
"""Shorter ones, such as the `ollama` that a local server takes for a key, are words that stand anywhere."""


def known_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values themselves. Settings that cannot be read hold none that are known."""
    found = [value for name, value in environment.items() if _NAMED_SO.search(name)]
    try:
        found += _in_settings(load_settings(environment))
    except ConfigError:
        # Exporting works without settings; whoever mends them is told by every other command.
        found += []
    return tuple(sorted({value.strip() for value in found if len(value.strip()) >= _SHORTEST}))


def _in_settings(settings: Settings) -> Iterator[str]:
    model = settings.model
    given = [model.api_key] if model.api_key is not None else []
    given += [*model.headers.values()]
    for server in settings.mcp_servers.values():
        given += [*server.env.values(), *server.headers.values()]
    for value in given:
        yield value.get_secret_value()
        # A header often says first what kind of key follows.
        yield value.get_secret_value().rpartition(" ")[2]
