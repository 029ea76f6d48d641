"""Search services: the request for each, and the results in its response."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

__all__ = ["SearchHit", "SearchProvider", "SearchRequest", "UnexpectedAnswer", "build_request", "parse_hits"]

_TITLE_CHARS = 200
_SNIPPET_CHARS = 400
_URL_CHARS = 2_000
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>")
_OWN_ADDRESSES = {"brave": "https://api.search.brave.com", "tavily": "https://api.tavily.com"}


class UnexpectedAnswer(ValueError):
    """The response does not come from this service; the message says why."""


@dataclass(frozen=True)
class SearchProvider:
    """The service that is used."""

    kind: Literal["searxng", "brave", "tavily"]
    url: str = ""
    """Empty: the service's own address."""
    api_key: str = ""

    @property
    def address(self) -> str:
        """Its base URL."""
        return self.url or _OWN_ADDRESSES.get(self.kind, "")


@dataclass(frozen=True)
class SearchRequest:
    """One HTTP request."""

    method: Literal["GET", "POST"]
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class SearchHit:
    """One result, cleaned: untrusted text that is shown to the model and in a terminal."""

    title: str
    url: str
    snippet: str


def build_request(provider: SearchProvider, query: str, limit: int) -> SearchRequest:
    """The request for a query."""
    match provider.kind:
        case "searxng":
            return SearchRequest("GET", f"{provider.address}/search?{urlencode({'q': query, 'format': 'json'})}")
        case "brave":
            asked = urlencode({"q": query, "count": limit})
            headers = {"X-Subscription-Token": provider.api_key}
            return SearchRequest("GET", f"{provider.address}/res/v1/web/search?{asked}", headers)
        case "tavily":
            headers = {"Authorization": f"Bearer {provider.api_key}"}
            return SearchRequest(
                "POST", f"{provider.address}/search", headers, {"query": query, "max_results": limit}
            )


def parse_hits(provider: SearchProvider, answer: Any, limit: int) -> list[SearchHit]:
    """The results in a response, each address once.

    Raises:
        UnexpectedAnswer: it has no list of results.
    """
    by_url: dict[str, SearchHit] = {}
    for entry in _entries(provider, answer):
        found = _cleaned(entry)
        if found is not None:
            by_url.setdefault(found.url, found)
    return list(by_url.values())[:limit]


def _entries(provider: SearchProvider, answer: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(answer, dict):
        raise UnexpectedAnswer("its JSON is not an object")
    place = answer.get("web", {"results": []}) if provider.kind == "brave" else answer
    entries = place.get("results") if isinstance(place, dict) else None
    if not isinstance(entries, list):
        raise UnexpectedAnswer("its JSON has no list of results")
    yield from (entry for entry in entries if isinstance(entry, dict))


def _cleaned(entry: Mapping[str, Any]) -> SearchHit | None:
    url = str(entry.get("url") or "").strip()
    if not url.startswith(("http://", "https://")) or len(url) > _URL_CHARS or not url.isprintable():
        return None
    snippet = entry.get("content") or entry.get("description") or ""
    return SearchHit(
        _plain(entry.get("title"), _TITLE_CHARS) or url, url.replace(" ", "%20"), _plain(snippet, _SNIPPET_CHARS)
    )


def _plain(text: object, limit: int) -> str:
    """One line without markup and without characters that could control a terminal."""
    bare = html.unescape(_MARKUP.sub("", str(text or "")[: limit * 8]))
    line = " ".join("".join(char if char.isprintable() else " " for char in bare).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
