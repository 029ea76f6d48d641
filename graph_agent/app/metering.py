"""What the settings say about spending: prices to count with, and budgets to keep."""

from typing import Protocol

from graph_agent.config.labels import OFFLINE_LABEL
from graph_agent.config.local_model import local_label
from graph_agent.config.settings import Settings
from graph_agent.errors import UsageError
from graph_agent.ports.meter import Meter, Rate
from graph_agent.ports.spending import Budget

__all__ = ["budget_of", "meter_of", "require_price"]

_FREE = Rate(0, 0)
"""What answers within this process costs nothing."""


class _Labelled(Protocol):
    @property
    def label(self) -> str: ...

    @property
    def name(self) -> str | None: ...


def meter_of(settings: Settings) -> Meter:
    """Counts with the prices of the settings."""
    rates = {name: Rate(**price.model_dump()) for name, price in settings.prices.items()}
    local = settings.model.local
    here = [OFFLINE_LABEL] if local is None else [OFFLINE_LABEL, local_label(local)]
    return Meter(rates | dict.fromkeys(here, _FREE), settings.currency)


def budget_of(settings: Settings) -> Budget:
    """What turns and threads may use."""
    return Budget(settings.max_tokens, settings.max_cost, settings.max_thread_tokens, settings.max_thread_cost)


def require_price(settings: Settings, model: _Labelled) -> None:
    """Refuse a limit on costs that could not be kept; where no model is chosen yet, requests are what is refused.

    Raises:
        UsageError: costs are limited and the price of the model is unknown.
    """
    if not budget_of(settings).limits_cost or model.name is None:
        return
    if meter_of(settings).price_of(model.label) is None:
        name = model.label.rpartition(" @ ")[0] or model.label
        raise UsageError(
            f"what {name} costs is not known, so --max-cost (max_cost, max_thread_cost) cannot be kept. Add its "
            f"price to config.toml, per million tokens in {settings.currency}: "
            f'[prices."{name}"] input = …, output = …; or leave the limit out, or limit tokens with --max-tokens'
        )
