"""Which models an endpoint has, and which one is meant where none is named."""

import json
from collections.abc import Mapping
from typing import Any

import openai

from graph_agent.config.choice import shown_url
from graph_agent.config.scrub import secrets_of
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ModelError, UsageError
from graph_agent.model.failures import NotAnApi, Place, diagnose
from graph_agent.model.wire import open_wire

__all__ = ["list_models", "listed_entries", "place_of", "resolve_model_name"]

_SHOWN = 12
_NO_SECRET = 3
"""So few characters stand anywhere, and keep nothing secret."""


def place_of(model: ModelSettings, name: str) -> Place:
    """Where requests for this model go, with all that no line may show."""
    secrets = tuple(one for one in secrets_of(model) if len(one) > _NO_SECRET)
    return Place(shown_url(model.endpoint), name, model.api_key is not None, secrets)


async def list_models(settings: Settings) -> tuple[str, ...]:
    """The names in the endpoint's model list, as it orders them.

    Raises:
        ModelError: the endpoint did not answer with a list.
    """
    return tuple(str(entry["id"]) for entry in await listed_entries(settings.model))


async def listed_entries(model: ModelSettings) -> tuple[Mapping[str, Any], ...]:
    """The endpoint's model list with all that it tells of each; every entry has an `id`.

    Raises:
        ModelError: the endpoint did not answer with a list.
    """
    wire = open_wire(model, "")
    try:
        answer = await wire.root_async_client.models.with_raw_response.list()
        return _entries_in(answer.content)
    except (openai.APIError, NotAnApi) as error:
        failure = diagnose(error, place_of(model, ""))
        raise ModelError(f"The list of models cannot be read. {failure.line}") from None
    finally:
        await wire.close()


def _entries_in(answer: bytes) -> tuple[Mapping[str, Any], ...]:
    """What can be used of the list; a server may send anything under this address.

    Raises:
        NotAnApi: it is no list of models.
    """
    try:
        page = json.loads(answer)
    except (ValueError, RecursionError):
        raise NotAnApi("it answered with something else than a list of models") from None
    listed = page.get("data") or () if isinstance(page, Mapping) else None
    if not isinstance(listed, list | tuple):
        raise NotAnApi("it answered with something else than a list of models")
    return tuple(entry for entry in listed if isinstance(entry, Mapping) and entry.get("id"))


async def resolve_model_name(settings: Settings) -> str:
    """The model that is named, else the only one of the endpoint.

    Raises:
        UsageError: none is named and the endpoint has none or several.
        ModelError: the endpoint did not answer with a list.
    """
    if settings.model.name is not None:
        return settings.model.name
    names = await list_models(settings)
    if len(names) == 1:
        return names[0]
    listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    found = f"offers {len(names)} models ({listed})" if names else "lists no models"
    raise UsageError(
        f"{shown_url(settings.model.endpoint)} {found}, and none is named: set GRAPH_AGENT_MODEL or give --model, "
        "or choose one in the chat with /model NAME."
    )
