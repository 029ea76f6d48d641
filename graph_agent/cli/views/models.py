"""The `model` commands: list, choose and test models, and use a local GGUF file.

Each raises ConfigError if the settings are invalid or cannot be written, and UsageError if an argument is wrong.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph_agent.app.models import LocalFile, budget_of, inspect_model_file, meter_of
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.views.format import confirm
from graph_agent.cli.views.table import (
    format_columns,
    format_fields,
    print_json,
    print_lines,
    print_result,
    print_text,
)
from graph_agent.config.edit import set_in_table, set_value, unset_value
from graph_agent.config.model_choice import choose_model, display_url
from graph_agent.config.settings import Settings
from graph_agent.config.sources import config_file, load_settings, model_settings_for
from graph_agent.errors import UsageError
from graph_agent.wording import format_age

if TYPE_CHECKING:
    from graph_agent.app.model_trial import ProbeResult


__all__ = [
    "LEARNED",
    "forget_learned",
    "list_models",
    "set_local_model",
    "show_local_model",
    "show_model",
    "test_model",
    "unset_local_model",
    "use_model",
]

_BASE_MODEL = (
    "This file has no chat template, so it is probably a base model, which continues text instead of answering. "
    "Use a file named Instruct or Chat."
)
_HONEST = "Small models take one step at a time and are often wrong. Side effects need approval as always."


def list_models(*, as_json: bool) -> ExitCode:
    """Print the profiles and the models of the endpoint; exit code 6 if the endpoint cannot list them."""
    # Imported late, here and below: it loads the model clients, which the other commands do not need.
    from graph_agent.app.model_trial import list_available_models, settings_with_model

    settings = settings_with_model(Path.cwd(), None)
    listed = asyncio.run(list_available_models(settings))
    address = display_url(settings.model.endpoint)
    profiles: list[dict[str, Any]] = []
    for name in listed.profiles:
        model = model_settings_for(settings, name)
        url, in_use = display_url(model.endpoint), name == settings.profile
        profiles.append({"name": name, "model": model.name, "base_url": url, "in_use": in_use})
    models = [
        {"name": name, "in_use": not settings.profile and name == settings.model.name} for name in listed.models
    ]
    if as_json:
        print_json({"profiles": profiles, "models": models, "error": listed.error or None})
    else:
        columns = {
            "": lambda one: "*" if one["in_use"] else "",
            "NAME": lambda one: one["name"],
            "MODEL": lambda one: one["model"] or "-",
            "AT": lambda one: one["base_url"],
        }
        rows = [*profiles, *({**one, "model": one["name"], "base_url": address} for one in models)]
        print_lines(format_columns(rows, columns) if rows else [])
        if listed.error:
            print_text(f"Models of the endpoint: {listed.error}")
        print_text("Set the default with graph-agent model use NAME, or use --model NAME for one run.")
    return ExitCode.MODEL if listed.failed else ExitCode.DONE


def use_model(name: str, *, as_json: bool) -> None:
    """Set the default model in the user's settings."""
    from graph_agent.app.model_trial import settings_with_model

    if not name.isprintable():
        raise UsageError(f"{name!r} is not a model name. List them with: graph-agent model list")
    path = set_value("model.name", json.dumps(name), os.environ)
    settings = settings_with_model(Path.cwd(), None)
    reason = choose_model(settings).reason
    if as_json:
        print_json({"config": str(path), "name": name, "profile": settings.profile or None, "answers": reason})
    else:
        print_text(f"Set model.name in {path}.", reason)


def show_model(name: str | None, *, as_json: bool) -> None:
    """Print the settings, price and budget of a model, and what was learned about it in the last day."""
    from graph_agent.app.model_trial import learned_about, settings_with_model

    settings = settings_with_model(Path.cwd(), name)
    model, choice, budget = settings.model, choose_model(settings), budget_of(settings)
    host = display_url(model.endpoint).partition("//")[2].partition("/")[0]
    price = meter_of(settings).price_of(f"{model.name} @ {host}")
    facts: dict[str, Any] = {
        "answers": choice.reason,
        "kind": choice.kind,
        "name": model.name,
        "profile": settings.profile or None,
        "base_url": display_url(model.endpoint) if choice.kind == "endpoint" else None,
        "key": "set" if model.api_key is not None else "none",
        "context_window": model.context_window,
        "price": asdict(price) | {"currency": settings.currency} if price else None,
        "budget": asdict(budget) | {"max_steps": settings.max_steps},
    }
    learned = learned_about(settings)
    facts["learned"] = [{"name": one.name, "value": one.value, "at": one.at.isoformat()} for one in learned]
    limits = ", ".join(f"{key} {value}" for key, value in facts["budget"].items() if value is not None)
    cost = f"{price.input} in, {price.output} out per million, {settings.currency}" if price else "unknown"
    fields = {key: "" if value is None else str(value) for key, value in facts.items()}
    known = ", ".join(f"{LEARNED[one.name]} ({format_age(one.at.isoformat())})" for one in learned)
    shown = fields | {"price": cost, "budget": limits, "learned": known}
    print_result(facts, format_fields(shown), as_json=as_json)


LEARNED = {
    "streaming": "no streaming",
    "stream_usage": "no token counts in streams",
    "null_content": "empty text instead of null beside calls",
    "function_calling": "no function calling",
    "needs_reasoning": "reasoning is sent back",
    "needs_signatures": "signatures are sent back",
    "images": "no images",
    "response_schema": "no JSON Schema for answers",
    "whole_requests": "drops the beginning of long requests",
    "calls_tools": "cannot use tools, by `model test`",
}
"""What the value that is not the usual one means, for each capability."""


def forget_learned(name: str | None, *, as_json: bool) -> None:
    """Forget what error responses said about a model, so that it is tried again."""
    from graph_agent.app import model_trial

    settings = model_trial.settings_with_model(Path.cwd(), name)
    model, number = settings.model, model_trial.forget_learned(settings)
    if as_json:
        print_json({"name": model.name, "base_url": display_url(model.endpoint), "forgotten": number})
    elif number:
        print_text(
            f"Forgot what was learned about {model.name} ({number}). The next request tries everything again."
        )
    else:
        print_text(f"Nothing was learned about {model.name or 'this model'} in the last day.")


def test_model(name: str | None, *, as_json: bool, yes: bool) -> ExitCode:
    """Test a model, print the findings, and write its limitations into the settings if the user agrees."""
    from graph_agent.app.model_trial import settings_with_model, try_model

    settings = settings_with_model(Path.cwd(), name)
    probes = asyncio.run(try_model(settings))
    works = all(probe.ok for probe in probes if probe.matters)
    table_name, values = _settings_to_write(settings, name, probes)
    if as_json:
        written = str(set_in_table(table_name, values, os.environ)) if yes and values else None
        wanted = {"table": ".".join(table_name), "values": values, "written": written}
        findings = [{key: value for key, value in asdict(one).items() if key != "setting"} for one in probes]
        print_json({"works": works, "findings": findings, "settings": wanted})
    else:
        columns = {
            "": lambda probe: "ok" if probe.ok else "FAILS" if probe.matters else "no",
            "PROBE": lambda probe: probe.name,
            "FOUND": lambda probe: probe.detail,
        }
        print_lines(format_columns(probes, columns))
        print_text("The model works." if works else "The agent cannot use this model as configured.")
        if values:
            lines = [f"  {key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
            print_text("", f"Add to [{'.'.join(table_name)}] in {config_file(os.environ)}:", *lines)
            if not yes and not sys.stdin.isatty():
                print_text("Use --yes to write it.")
            elif yes or confirm("Write it?", hint="Use --yes to skip the question."):
                print_text(f"Wrote {set_in_table(table_name, values, os.environ)}.")
    return ExitCode.DONE if works else ExitCode.MODEL


def _settings_to_write(
    settings: Settings, name: str | None, probes: Sequence["ProbeResult"]
) -> tuple[tuple[str, ...], dict[str, str | int]]:
    """The config table for the findings and its new values; a model without a table gets a profile."""
    values = dict(probe.setting for probe in probes if probe.setting is not None)
    profile = name if name in settings.models else settings.profile
    if profile:
        return ("models", profile), values
    general = settings.general_model or settings.model
    if name is None or name == general.name:
        return ("model",), values
    return ("models", name), {"name": name, **values} if values else {}


def set_local_model(name: str, *, as_json: bool) -> None:
    """Check a GGUF file and set it as the local model."""
    file = inspect_model_file(name)
    settings = set_value("model.local", str(file.path), os.environ)
    choice = choose_model(load_settings(os.environ))
    if as_json:
        known = None if file.known is None else asdict(file.known)
        facts = {"file": str(file.path), "bytes": file.bytes, "label": file.label, "header": asdict(file.header)}
        print_json({**facts, "known": known, "config": str(settings), "answers": choice.kind})
        return
    print_text(*_file_lines(file))
    print_text(f"wrote    model.local in {settings}", "undo     graph-agent model local --off")
    if choice.kind != "local":
        print_text(f"It is not used yet. {choice.reason}")


def _file_lines(file: LocalFile) -> Iterator[str]:
    header, known = file.header, file.known
    yield f"file     {file.path} ({file.bytes / 1e6:,.0f} MB, GGUF {header.version}, {header.architecture})"
    if known is None:
        yield f"model    {header.name or 'without a name'}; an unknown file, so nothing was verified"
        yield f"licence  {header.licence or 'not named in the file; check where it came from'}"
    else:
        yield f"model    {known.name}: size and SHA-256 verified; {known.about}"
        yield f"licence  {known.licence}"
        yield f"memory   {known.memory}"
    if not header.has_chat_template:
        yield f"warning  {_BASE_MODEL}"
    yield f"use      as {file.label}, in this process, if no endpoint is configured. {_HONEST}"


def unset_local_model(*, as_json: bool) -> None:
    """Remove the local model from the settings."""
    settings = unset_value("model.local", os.environ)
    choice = choose_model(load_settings(os.environ))
    result = {"config": str(settings), "answers": choice.kind}
    print_result(result, f"Removed the local model from {settings}. {choice.reason}", as_json=as_json)


def show_local_model(*, as_json: bool) -> None:
    """Print which model is used, and how to use one from a file."""
    choice = choose_model(load_settings(os.environ))
    if as_json:
        print_json({"answers": choice.kind, "reason": choice.reason})
    else:
        print_text(choice.reason, "Use a GGUF file of an instruct model with: graph-agent model local FILE")
