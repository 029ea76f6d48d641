"""Makes the settings of one model out of `[model]` and the profile that a name means. Pure; asks no endpoint."""

from typing import Any

from graph_agent.config.model_settings import ModelSettings
from graph_agent.config.settings import Settings

__all__ = ["model_named", "with_model"]

_OF_THE_ENDPOINT = ("api_key", "headers", "extra_body", "ca_file", "factory")
"""Belong to the address they stand beside: a profile with an address of its own inherits none of them."""

_OF_THE_MODEL = ("name", "context_window")
"""Belong to one model: a profile that names another one, or another address, inherits none of them."""


def model_named(settings: Settings, name: str) -> ModelSettings:
    """How the model of this name is asked: the profile `[models.NAME]`, else a model of the endpoint in use."""
    profile = settings.models.get(name)
    if profile is not None:
        return _completed(profile, settings.general_model or settings.model)
    present = settings.model
    if name == present.name:
        return present
    return present.model_copy(update={"name": name, "context_window": None})


def with_model(settings: Settings, name: str) -> Settings:
    """The settings with the model of this name in use. What a profile inherits stays what `[model]` says."""
    return settings.model_copy(
        update={
            "model": model_named(settings, name),
            "general_model": settings.general_model or settings.model,
            "profile": name if name in settings.models else settings.profile,
        }
    )


def _completed(profile: ModelSettings, general: ModelSettings) -> ModelSettings:
    """The profile, with what it leaves unset taken from `[model]` where it belongs to the same thing."""
    own = profile.model_fields_set
    is_elsewhere = "base_url" in own and profile.endpoint != general.endpoint
    is_another = is_elsewhere or ("name" in own and profile.name != general.name)
    foreign = {*(_OF_THE_ENDPOINT if is_elsewhere else ()), *(_OF_THE_MODEL if is_another else ())}
    inherited: dict[str, Any] = {
        field: getattr(general, field) for field in general.model_fields_set - own if field not in foreign
    }
    return profile.model_copy(update=inherited)
