"""The secrets this process knows, and how they are hidden in texts that are stored or shown."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from graph_agent.config.model_choice import is_key_in_path
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.config.sources import load_settings
from graph_agent.errors import ConfigError

__all__ = ["Redactor", "known_secrets", "model_secrets", "redactor", "url_secrets"]

_MIN_LENGTH = 8
"""Shorter ones, such as the `ollama` that a local server takes for a key, are words that occur anywhere."""
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{\w+\}")


class Redactor:
    """Replaces secrets by as many stars as they have bytes."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one may be the beginning of another.
        wanted = sorted({one.encode() for one in secrets if len(one) >= _MIN_LENGTH}, key=len, reverse=True)
        self._bytes = re.compile(b"|".join(map(re.escape, wanted))) if wanted else None
        self._text = re.compile("|".join(re.escape(one.decode()) for one in wanted)) if wanted else None

    def __call__(self, text: str) -> str:
        """A text without secrets."""
        return text if self._text is None else self._text.sub(lambda found: "*" * len(found[0].encode()), text)

    def data(self, data: bytes) -> bytes:
        """The same for bytes."""
        return data if self._bytes is None else self._bytes.sub(lambda found: b"*" * len(found[0]), data)

    def value(self, value: Any) -> Any:
        """The same for every text within a JSON value; names of fields are kept."""
        if self._text is None:
            return value
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {key: self.value(one) for key, one in value.items()}
        return [self.value(one) for one in value] if isinstance(value, list | tuple) else value


@cache
def redactor() -> Redactor:
    """Hides the secrets that this process knew when it was first asked."""
    return Redactor(known_secrets(os.environ))


def known_secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets of the environment and, if they can be read, of the settings."""
    # Words and paths occur in many places, and hide nothing.
    found = [
        value
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and not value.isalpha() and not value.startswith(("/", "~", "./"))
    ]
    found += (secret for value in environment.values() if "://" in value for secret in _credentials(value))
    # Exporting works without settings; every other command reports what is wrong with them.
    with suppress(ConfigError):
        found += _settings_secrets(load_settings(environment))
    return tuple(sorted({value.strip() for value in found if len(value.strip()) >= _MIN_LENGTH}))


def _settings_secrets(settings: Settings) -> Iterator[str]:
    if settings.web_search.api_key is not None:
        yield settings.web_search.api_key.get_secret_value()
    for model in (settings.model, settings.general_model or settings.model, *settings.models.values()):
        yield from model_secrets(model)
    for server in settings.mcp_servers.values():
        for value in (*server.env.values(), *server.headers.values()):
            secret = value.get_secret_value()
            if not _VARIABLE.fullmatch(secret):
                yield from (secret, secret.rpartition(" ")[2])
    notify = (settings.notify.webhook, settings.notify.ntfy)
    addresses = [
        settings.otel_endpoint,
        settings.web_search.url,
        *(one.url for one in settings.mcp_servers.values()),
    ]
    for address in (*addresses, *(one.get_secret_value() for one in notify if one is not None)):
        yield from url_secrets(address or "")


def model_secrets(model: ModelSettings) -> Iterator[str]:
    """What no line about an endpoint may show: its key, its headers, the credentials in its address."""
    given = [model.api_key] if model.api_key is not None else []
    for value in (*given, *model.headers.values()):
        secret = value.get_secret_value()
        # A header often says first what kind of key follows.
        yield from (secret, secret.rpartition(" ")[2])
    # Not what looks like a key in its path, which may be the name of the model.
    yield from _credentials(model.endpoint)


def url_secrets(url: str) -> Iterator[str]:
    """What `display_url` hides of an address and looks like a secret: credentials, keys in its path and query."""
    yield from _credentials(url)
    with suppress(ValueError):
        parts = urlsplit(url)
        yield from filter(is_key_in_path, parts.path.split("/"))
        yield from (value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name))


def _credentials(url: str) -> Iterator[str]:
    """The password in an address, else its user name; as written and with percent-encoding resolved."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if secret := parts.password or parts.username:
            yield from (secret, unquote(secret))
