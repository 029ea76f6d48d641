import pytest
from pydantic import SecretStr

from graph_agent.app.doctor import check_web_search
from graph_agent.app.toolset import search_provider
from graph_agent.config.settings import SearchSettings
from tools.web_ops.search_services import SearchProvider

URL = "http://localhost:8080"


@pytest.mark.parametrize(
    ("settings", "environment", "provider", "detail"),
    [
        (SearchSettings(), {"BRAVE_API_KEY": "k"}, None, "not set up, so it is not offered"),
        (SearchSettings(provider="searxng"), {}, None, "searxng lacks its address: setting web_search.url"),
        (
            SearchSettings(provider="searxng", url=f"{URL}/"),
            {},
            SearchProvider("searxng", URL),
            f"searxng at {URL}",
        ),
        (
            SearchSettings(provider="brave"),
            {"TAVILY_API_KEY": "k"},
            None,
            "brave lacks its key: setting web_search",
        ),
        (
            SearchSettings(provider="brave"),
            {"BRAVE_API_KEY": " k "},
            SearchProvider("brave", api_key="k"),
            "brave at https://api.search.brave.com",
        ),
        (
            SearchSettings(provider="tavily", api_key=SecretStr("own")),
            {"TAVILY_API_KEY": "k"},
            SearchProvider("tavily", api_key="own"),
            "tavily at https://api.tavily.com",
        ),
    ],
)
def test_who_is_asked_follows_from_settings_and_environment_and_what_lacks_is_said(
    settings: SearchSettings, environment: dict[str, str], provider: SearchProvider | None, detail: str
) -> None:
    assert search_provider(settings, environment) == provider
    assert check_web_search(settings, environment).detail.startswith(detail)
