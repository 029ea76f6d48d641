"""Who is asked when the web is searched: table `[web_search]`. Values only."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from graph_agent.config.model_settings import HeaderValue, Section, is_http_url

__all__ = ["SearchSettings"]


def _address(value: str) -> str:
    trimmed = value.strip().rstrip("/")
    if not is_http_url(trimmed) or "?" in trimmed or "#" in trimmed:
        raise ValueError("should be an address that starts with http:// or https://, e.g. http://localhost:8080")
    return trimmed


class SearchSettings(Section):
    """Without a provider there is no web search."""

    provider: Literal["searxng", "brave", "tavily"] | None = None
    """Who is asked: a SearXNG server at `url`, or the service of Brave or Tavily with a key."""
    url: Annotated[str, AfterValidator(_address)] | None = None
    """Address of the SearXNG server; of a service, in place of its own."""
    api_key: HeaderValue | None = None
    """Key of the service; else BRAVE_API_KEY or TAVILY_API_KEY of the environment."""
