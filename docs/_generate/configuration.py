"""Renders docs/configuration.md from the settings models and the tables of environment variables and flags."""

from collections.abc import Iterator, Mapping
from typing import Any

from docs._generate.markdown import code, note, table
from graph_agent.config.explain import describe_type
from graph_agent.config.settings import Settings, known_keys
from graph_agent.config.sources import ENVIRONMENT, FLAGS

__all__ = ["page"]

_INTRODUCTION = """\
A value is taken from the flag, else from the environment, else from the project's `.graph-agent/config.toml`, else
from the user's `config.toml`, else the default holds. The user's lies in `$XDG_CONFIG_HOME/graph-agent/` (usually
`~/.config/graph-agent/`), or in `$GRAPH_AGENT_HOME` where that is set. A wrong value or an unknown key is an error
that names the place.

A project's file counts only after its folder was trusted (`graph-agent config trust`), and then only so far: its
rules, tools, hooks and MCP servers join the user's own, `model.name` is taken, `mode`, the budgets (`max_...`),
`sandbox` and `sandbox_network` are taken where that is stricter, all else is ignored. What became of it is said by
`graph-agent config explain KEY`.
""".splitlines()


_PROFILES = """\
## Profiles of models

A table `[models.NAME]` takes the keys of `[model]` and is chosen by its name wherever a model is named: `--model`,
`GRAPH_AGENT_MODEL`, `model.name`. Any other name is a model of the endpoint. What a profile leaves unset is taken
from `[model]`, but for two things: a profile with another `base_url` inherits neither key nor headers, `extra_body`
and `ca_file`, which belong to the address they stand beside; and one with another address or another `name`
inherits neither the name nor the `context_window`. A profile without an address uses that of `[model]`, with a key
of its own where it has one.
""".splitlines()


def page() -> str:
    """The whole page, as it should stand on disk."""
    return "\n".join(
        [
            note("graph_agent/config"),
            "# Configuration",
            "",
            *_INTRODUCTION,
            "",
            "## Keys of config.toml",
            "",
            *table(("key", "value", "default", "flag", "what it does"), _key_rows()),
            "",
            "A dotted key stands in the table of its first part: `model.name` is `name` under `[model]`.",
            "",
            *_PROFILES,
            "",
            "## Environment",
            "",
            *table(("variable", "sets"), _variable_rows()),
            "",
            "A later row beats an earlier one for the same key; an empty variable counts as unset.",
            "",
        ]
    )


def _variable_rows() -> Iterator[tuple[str, str]]:
    for variable, key in ENVIRONMENT:
        yield code(variable), code(key)
    yield code("GRAPH_AGENT_DB"), "the database file"
    yield code("GRAPH_AGENT_PLAIN"), "`1`: nothing on the terminal is drawn anew, for screen readers"
    yield code("GRAPH_AGENT_HOME"), "one folder for config.toml and, in its `data` folder, the database"


def _key_rows() -> Iterator[tuple[str, ...]]:
    schema = Settings.model_json_schema()
    for key in known_keys():
        field = _field(schema, key)
        default = field.get("default")
        yield (
            code(key),
            describe_type(key),
            "" if default in (None, {}, []) else code(str(default)),
            code(FLAGS.get(key, "")),
            str(field["description"]),
        )


def _field(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    section, _, name = key.rpartition(".")
    owner = schema
    if section:
        reference: str = schema["properties"][section]["$ref"]
        owner = schema["$defs"][reference.rpartition("/")[2]]
    field: Mapping[str, Any] = owner["properties"][name]
    return field
