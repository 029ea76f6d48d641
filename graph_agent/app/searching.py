"""Who answers web_search, from the settings and the environment. Asks nobody."""

from collections.abc import Mapping

from graph_agent.app.check import Check
from graph_agent.config.choice import shown_url
from graph_agent.config.search_settings import SearchSettings
from tools.web_ops.providers import SearchProvider

__all__ = ["examine_search", "search_provider"]

_VARIABLES = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}


def search_provider(settings: SearchSettings, environment: Mapping[str, str]) -> SearchProvider | None:
    """The service as it is set up; None where it is not, or not wholly."""
    if settings.provider is None or _missing(settings, environment):
        return None
    return SearchProvider(settings.provider, settings.url or "", _key(settings, environment))


def examine_search(settings: SearchSettings, environment: Mapping[str, str]) -> Check:
    """Whether the web can be searched, as far as that shows without asking."""
    if settings.provider is None:
        return Check("web search", ok=True, detail="not set up, so it is not offered: setting web_search.provider")
    missing = _missing(settings, environment)
    if missing:
        return Check("web search", ok=False, detail=f"{settings.provider} lacks {missing}", matters=False)
    address = shown_url(SearchProvider(settings.provider, settings.url or "").address)
    return Check("web search", ok=True, detail=f"{settings.provider} at {address}")


def _missing(settings: SearchSettings, environment: Mapping[str, str]) -> str:
    if settings.provider == "searxng":
        return "" if settings.url else "its address: setting web_search.url"
    variable = _VARIABLES.get(settings.provider or "", "")
    return "" if _key(settings, environment) else f"its key: setting web_search.api_key, or {variable}"


def _key(settings: SearchSettings, environment: Mapping[str, str]) -> str:
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    return environment.get(_VARIABLES.get(settings.provider or "", ""), "").strip()
