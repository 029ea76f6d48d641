"""Hides known secrets in texts that are kept or shown. Knows the texts to hide, not where they come from."""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from graph_agent.config.settings import ModelSettings

__all__ = ["SHORTEST_SECRET", "Redactor", "model_secrets", "url_secrets"]

SHORTEST_SECRET = 8
"""Shorter ones, such as the `ollama` that a local server takes for a key, are words that stand anywhere."""


class Redactor:
    """Puts stars, as many as there were bytes, where one of the secrets stands."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one may be the beginning of another.
        wanted = sorted({one.encode() for one in secrets if len(one) >= SHORTEST_SECRET}, key=len, reverse=True)
        self._bytes = re.compile(b"|".join(map(re.escape, wanted))) if wanted else None
        self._text = re.compile("|".join(re.escape(one.decode()) for one in wanted)) if wanted else None

    def __call__(self, text: str) -> str:
        """A text without secrets."""
        return text if self._text is None else self._text.sub(lambda found: "*" * len(found[0].encode()), text)

    def data(self, data: bytes) -> bytes:
        """The same for bytes."""
        return data if self._bytes is None else self._bytes.sub(lambda found: b"*" * len(found[0]), data)

    def value(self, value: Any) -> Any:
        """The same for every text within a JSON value; names of fields stay."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {key: self.value(one) for key, one in value.items()}
        return [self.value(one) for one in value] if isinstance(value, list | tuple) else value


def model_secrets(model: ModelSettings) -> Iterator[str]:
    """What no line about an endpoint may show: its key, its headers, what stands before the host in its address."""
    given = [model.api_key] if model.api_key is not None else []
    for value in (*given, *model.headers.values()):
        yield value.get_secret_value()
        # A header often says first what kind of key follows.
        yield value.get_secret_value().rpartition(" ")[2]
    yield from url_secrets(model.endpoint)


def url_secrets(url: str) -> Iterator[str]:
    """The user name and password in an address, as they stand there and as they are meant."""
    parts = urlsplit(url)
    for secret in filter(None, (parts.password, parts.username if not parts.password else None)):
        yield secret
        yield unquote(secret)
