"""`model list`, `use`, `show` and `test`: which models there are, which answers, and what it can do."""

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.app.metering import budget_of, meter_of
from graph_agent.cli.escape import escape
from graph_agent.cli.exits import Exit
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.cli.views.table import labelled, table
from graph_agent.config.change import set_value
from graph_agent.config.choice import choose_model, shown_url
from graph_agent.config.profiles import model_named
from graph_agent.config.settings import Settings

if TYPE_CHECKING:
    from graph_agent.app.model_trial import Finding

__all__ = ["list_models", "show_model", "test_model", "use_model"]


def list_models(*, as_json: bool) -> None:
    """Print the profiles and the models of the endpoint.

    Raises:
        ConfigError: the settings cannot be read.
    """
    # Loaded with what speaks to models, which no look at threads waits for.
    from graph_agent.app.model_trial import list_all, settings_of

    settings = settings_of(Path.cwd(), None)
    listed = asyncio.run(list_all(settings))
    here = shown_url(settings.model.endpoint)
    profiles = [_profile(settings, name) for name in listed.profiles]
    models = [
        {"name": name, "in_use": not settings.profile and name == settings.model.name} for name in listed.models
    ]
    if as_json:
        print_json({"profiles": profiles, "models": models, "error": listed.error or None})
        return
    rows = [(_mark(one), one["name"], one["model"] or "-", one["base_url"]) for one in profiles]
    rows += [(_mark(one), one["name"], one["name"], here) for one in models]
    if rows:
        print_lines(table(("", "NAME", "MODEL", "AT"), rows))
    if listed.error:
        print_lines([escape(f"Models of the endpoint: {listed.error}")])
    print_lines(["`graph-agent model use NAME` takes one for good, `--model NAME` for one run."])


def use_model(name: str, *, as_json: bool) -> None:
    """Write into the user's settings that this model answers from now on.

    Raises:
        ConfigError: they cannot be read or written.
    """
    # Loaded with what speaks to models, which no look at threads waits for.
    from graph_agent.app.model_trial import settings_of

    path = set_value("model.name", json.dumps(name), os.environ)
    settings = settings_of(Path.cwd(), None)
    reason = choose_model(settings).reason
    if as_json:
        print_json({"config": str(path), "name": name, "profile": settings.profile or None, "answers": reason})
    else:
        print_lines([escape(f"wrote model.name in {path}"), escape(reason)])


def show_model(name: str | None, *, as_json: bool) -> None:
    """Print how a model is asked, what it costs and what it may cost.

    Raises:
        ConfigError: the settings cannot be read.
    """
    # Loaded with what speaks to models, which no look at threads waits for.
    from graph_agent.app.model_trial import settings_of

    settings = settings_of(Path.cwd(), name)
    model, choice, budget = settings.model, choose_model(settings), budget_of(settings)
    host = shown_url(model.endpoint).partition("//")[2].partition("/")[0]
    price = meter_of(settings).price_of(f"{model.name} @ {host}")
    facts: dict[str, Any] = {
        "answers": choice.reason,
        "kind": choice.kind,
        "name": model.name,
        "profile": settings.profile or None,
        "base_url": shown_url(model.endpoint) if choice.kind == "endpoint" else None,
        "key": "set" if model.api_key is not None else "none",
        "context_window": model.context_window,
        "price": asdict(price) | {"currency": settings.currency} if price else None,
        "budget": asdict(budget) | {"max_steps": settings.max_steps},
    }
    if as_json:
        print_json(facts)
        return
    limits = ", ".join(f"{key} {value}" for key, value in facts["budget"].items() if value is not None)
    cost = f"{price.input} in, {price.output} out per million, {settings.currency}" if price else "unknown"
    shown = {
        key: str(value) for key, value in facts.items() if key not in ("price", "budget") and value is not None
    }
    print_lines(labelled(shown | {"price": cost, "budget": limits}))


def test_model(name: str | None, *, as_json: bool) -> Exit:
    """Try a model out and print what was found.

    Raises:
        UsageError: there is nothing to try.
        ConfigError: the settings cannot be read.
    """
    # Loaded with what speaks to models, which no look at threads waits for.
    from graph_agent.app.model_trial import settings_of, try_model

    found = asyncio.run(try_model(settings_of(Path.cwd(), name)))
    works = all(one.ok for one in found if one.matters)
    if as_json:
        print_json({"works": works, "findings": [asdict(one) for one in found]})
    else:
        print_lines(table(("", "PROBE", "FOUND"), [(_sign(one), one.name, one.detail) for one in found]))
        print_lines(["It works." if works else "The agent cannot work with it as it is."])
    return Exit.DONE if works else Exit.MODEL


def _profile(settings: Settings, name: str) -> dict[str, Any]:
    model = model_named(settings, name)
    in_use = name == settings.profile
    return {"name": name, "model": model.name, "base_url": shown_url(model.endpoint), "in_use": in_use}


def _mark(one: dict[str, Any]) -> str:
    return "*" if one["in_use"] else ""


def _sign(found: "Finding") -> str:
    return "ok" if found.ok else "FAILS" if found.matters else "no"
