"""`model local`: what a file is, under which licence, what will be done with it, and how to go back."""

import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from graph_agent.app.local_model import LocalFile, adopt, examine_file, give_up, present_choice
from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import print_json, print_lines

__all__ = ["tell_local", "use_local", "use_no_local"]

_BASE_MODEL = (
    "This file has no chat template: it is most likely a base model, which goes on writing instead of answering. "
    "Files named Instruct or Chat have one."
)
_HONEST = (
    "It is small: it does one step at a time and is often wrong. What writes is shown and asked about as always."
)


def use_local(name: str, *, as_json: bool) -> None:
    """Check a file, make it the local model and say so.

    Raises:
        UsageError: it cannot be used.
        ConfigError: the settings cannot be read or written.
    """
    file = examine_file(name)
    settings = adopt(file, os.environ)
    choice = present_choice(os.environ)
    if as_json:
        print_json({**_facts(file), "config": str(settings), "answers": choice.kind})
        return
    print_lines(escape(line) for line in _page(file))
    print_lines([escape(f"wrote    model.local in {settings}"), "back     graph-agent model local --off"])
    if choice.kind != "local":
        print_lines([escape(f"It does not answer yet. {choice.reason}")])


def use_no_local(*, as_json: bool) -> None:
    """Take the local model out of the settings.

    Raises:
        ConfigError: they cannot be read or written.
    """
    settings = give_up(os.environ)
    choice = present_choice(os.environ)
    if as_json:
        print_json({"config": str(settings), "answers": choice.kind})
    else:
        print_lines([escape(f"No local model stands in {settings} any more. {choice.reason}")])


def tell_local(*, as_json: bool) -> None:
    """Say which model answers now, and how to use one from a file.

    Raises:
        ConfigError: the settings cannot be read.
    """
    choice = present_choice(os.environ)
    if as_json:
        print_json({"answers": choice.kind, "reason": choice.reason})
    else:
        print_lines([escape(choice.reason), "graph-agent model local FILE takes a GGUF file of an instruct model."])


def _facts(file: LocalFile) -> dict[str, Any]:
    known = None if file.known is None else asdict(file.known)
    header = asdict(file.header)
    return {"file": str(file.path), "bytes": file.bytes, "label": file.label, "header": header, "known": known}


def _page(file: LocalFile) -> Iterator[str]:
    header, known = file.header, file.known
    yield f"file     {file.path} ({file.bytes / 1e6:,.0f} MB, GGUF {header.version}, {header.architecture})"
    if known is None:
        yield f"model    {header.name or 'without a name'}; no file that is known here, so nothing was compared"
        yield f"licence  {header.licence or 'the file names none; ask where it came from'}"
    else:
        yield f"model    {known.name}: size and SHA-256 are those of the known file; {known.about}"
        yield f"licence  {known.licence}"
        yield f"memory   {known.memory}"
    if not header.has_chat_template:
        yield f"warning  {_BASE_MODEL}"
    yield f"use      as {file.label}, in this process, where no endpoint is configured. {_HONEST}"
