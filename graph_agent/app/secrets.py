"""Which texts must neither be kept nor leave this machine: the keys that the settings and the environment hold."""

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from urllib.parse import parse_qsl, urlsplit

from graph_agent.config.load import load_settings
from graph_agent.config.scrub import SHORTEST_SECRET, Scrub, secrets_of, url_secrets
from graph_agent.config.settings import Settings
from graph_agent.errors import ConfigError

__all__ = ["known_secrets", "scrub_here"]

_NAMED_SO = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{\w+\}")


def known_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values themselves. Settings that cannot be read hold none that are known."""
    found = [value for name, value in environment.items() if _NAMED_SO.search(name) and _is_telling(value)]
    try:
        found += _in_settings(load_settings(environment))
    except ConfigError:
        # Exporting works without settings; whoever mends them is told by every other command.
        found += []
    return tuple(sorted({value.strip() for value in found if len(value.strip()) >= SHORTEST_SECRET}))


def _is_telling(value: str) -> bool:
    """Whether a value can be told from ordinary text: words and paths stand in many places, and hide nothing."""
    return not value.isalpha() and not value.startswith(("/", "~", "./"))


@cache
def scrub_here() -> Scrub:
    """Hides the secrets that this process knew when it was first asked."""
    return Scrub(known_secrets(os.environ))


def _in_settings(settings: Settings) -> Iterator[str]:
    if settings.web_search.api_key is not None:
        yield settings.web_search.api_key.get_secret_value()
    for model in (settings.model, settings.general_model or settings.model, *settings.models.values()):
        yield from secrets_of(model)
    for server in settings.mcp_servers.values():
        for value in (*server.env.values(), *server.headers.values()):
            secret = value.get_secret_value()
            if not _REFERENCE.fullmatch(secret):
                yield secret
                yield secret.rpartition(" ")[2]
        yield from url_secrets(server.url or "")
        yield from (value for name, value in parse_qsl(urlsplit(server.url or "").query) if _NAMED_SO.search(name))
