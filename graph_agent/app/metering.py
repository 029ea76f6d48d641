"""What the settings say about spending: prices to count with, and budgets to keep."""

from collections.abc import Iterator
from typing import Protocol
from urllib.parse import urlsplit

from graph_agent.config.choice import choose_model, shown_url
from graph_agent.config.labels import OFFLINE_LABEL
from graph_agent.config.local_model import local_label
from graph_agent.config.profiles import model_named
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
        UsageError: costs are limited and the price of the model, or of one that stands in for it, is unknown.
    """
    if not budget_of(settings).limits_cost or model.name is None:
        return
    prices = meter_of(settings)
    unknown = next((label for label in _asked(settings, model) if prices.price_of(label) is None), None)
    if unknown is not None:
        name = unknown.rpartition(" @ ")[0] or unknown
        raise UsageError(
            f"what {name} costs is not known, so --max-cost (max_cost, max_thread_cost) cannot be kept. Add its "
            f"price to config.toml, per million tokens in {settings.currency}: "
            f'[prices."{name}"] input = …, output = …; or leave the limit out, or limit tokens with --max-tokens'
        )


def _asked(settings: Settings, model: _Labelled) -> Iterator[str]:
    """The labels of whoever may be asked: the model, and behind an endpoint's those to fall back on."""
    yield model.label
    for spare in settings.model.fallback if choose_model(settings).kind == "endpoint" else ():
        one = model_named(settings, spare)
        yield f"{one.name} @ {urlsplit(shown_url(one.endpoint)).netloc}"
