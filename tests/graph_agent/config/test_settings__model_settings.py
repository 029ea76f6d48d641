import pytest
from pydantic import ValidationError

from graph_agent.config.settings import OPENAI_BASE_URL, ModelSettings, Price


def test_requests_go_to_openai_unless_a_base_url_is_set() -> None:
    given = [" http://[::1]:8080/v1/ ", "http://[::1]:8080/v1/chat/completions"]

    assert ModelSettings().endpoint == OPENAI_BASE_URL
    assert [ModelSettings(base_url=url).endpoint for url in given] == ["http://[::1]:8080/v1"] * 2
    with pytest.raises(ValidationError, match="should end with its path"):
        ModelSettings(base_url="http://host/v1?api-version=1")


def test_a_key_loses_the_line_end_it_was_pasted_with() -> None:
    key = ModelSettings.model_validate({"api_key": "sk-1\n"}).api_key

    assert key is not None
    assert key.get_secret_value() == "sk-1"


@pytest.mark.parametrize("name", ["", " \t"])
def test_a_blank_is_the_name_of_no_model(name: str) -> None:
    with pytest.raises(ValidationError, match="should name a model"):
        ModelSettings(name=name)


def test_a_price_that_no_cost_can_be_counted_with_is_refused() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1000000000"):
        Price(input=1, output=1e308)
