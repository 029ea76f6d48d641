from pathlib import Path

import pytest

from graph_agent.app.models import budget_of, meter_of, require_price
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import UsageError
from graph_agent.model.offline.model import OfflineModel
from graph_agent.model.openai.endpoint import EndpointModel
from graph_agent.ports.usage import Budget


def settings(**values: object) -> Settings:
    model = ModelSettings(base_url="http://127.0.0.1:9/v1", name="m")
    return Settings.model_validate({"database": Path("x.db"), "model": model, **values})


def test_budgets_and_prices_come_from_the_settings() -> None:
    found = settings(max_tokens=1, max_cost=2, max_thread_tokens=3, max_thread_cost=4, currency="EUR")

    assert budget_of(found) == Budget(1, 2, 3, 4)
    assert meter_of(found).currency == "EUR"
    assert meter_of(found).price_of(OFFLINE_LABEL) is not None


def test_a_local_model_costs_nothing() -> None:
    found = Settings(database=Path("x.db"), model=ModelSettings(local=Path("m/tiny.gguf")))

    assert meter_of(found).price_of("tiny (local, limited)") == meter_of(found).price_of(OFFLINE_LABEL)


async def test_a_limit_on_costs_is_refused_where_the_price_is_unknown_and_says_how_to_add_it() -> None:
    found = settings(max_cost=1)

    with pytest.raises(UsageError) as refused:
        require_price(found, EndpointModel(found))

    assert '[prices."m"] input = …' in str(refused.value)


async def test_a_model_to_fall_back_on_needs_a_price_too_where_costs_are_limited() -> None:
    model = ModelSettings(base_url="http://127.0.0.1:9/v1", name="m", fallback=("spare",))
    spare = {"spare": {"base_url": "http://127.0.0.1:8/v1", "name": "n"}}
    one = {"input": 1, "output": 1}
    unpriced = settings(max_cost=1, model=model, models=spare, prices={"m": one})
    priced = settings(max_cost=1, model=model, models=spare, prices={"m": one, "n @ 127.0.0.1:8": one})

    require_price(priced, EndpointModel(priced))
    with pytest.raises(UsageError, match=r'\[prices."n"\] input = …'):
        require_price(unpriced, EndpointModel(unpriced))


async def test_with_a_price_or_without_a_model_there_is_nothing_to_refuse() -> None:
    priced = settings(max_cost=1, prices={"m": {"input": 1, "output": 1}})

    require_price(priced, EndpointModel(priced))
    require_price(settings(max_cost=1), OfflineModel())
    require_price(settings(), EndpointModel(settings()))
