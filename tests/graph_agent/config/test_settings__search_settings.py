import pytest
from pydantic import ValidationError

from graph_agent.config.settings import SearchSettings


@pytest.mark.parametrize("url", ["localhost:8080", "http://x/?q=", "http://x/#a"])
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="should be an address that starts with"):
        SearchSettings(url=url)
