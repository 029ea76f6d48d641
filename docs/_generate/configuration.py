"""Renders docs/configuration.md from the settings models and the tables of environment variables and flags."""

from collections.abc import Iterator, Mapping
from typing import Any

from docs._generate.markdown import code, note, table
from graph_agent.config.explain import describe_key, describe_type
from graph_agent.config.settings import Settings, known_keys
from graph_agent.config.sources import ENVIRONMENT, FLAGS

__all__ = ["page"]

_INTRODUCTION = """\
A setting comes from the first of these that sets it: a command-line flag, the environment, the project's
`.graph-agent/config.toml`, your own `config.toml`, the default. Your file is in `$XDG_CONFIG_HOME/graph-agent/`
(usually `~/.config/graph-agent/`), or in `$GRAPH_AGENT_HOME` if that is set. A wrong value or an unknown key is an
error that names the file and the key.

A project's file is ignored until you trust its folder (`graph-agent config trust`). After that, its rules, tools,
hooks and MCP servers are added to your own, and its `model.name` is used. Its `mode`, budgets (`max_...`),
`sandbox` and `sandbox_network` are used only if they are stricter than yours. All other keys are ignored.
`graph-agent config explain KEY` shows every value of a key and which one is used.
""".splitlines()


_PROFILES = """\
## Profiles of models

A table `[models.NAME]` takes the keys of `[model]`. You can use its name wherever you name a model: `--model`,
`GRAPH_AGENT_MODEL`, `model.name`. Any other name is a model of the endpoint.

A profile inherits the keys that it does not set from `[model]`, with two exceptions:

- With another `base_url`, it does not inherit `api_key`, `headers`, `extra_body` and `ca_file`, which belong to the
  address.
- With another `base_url` or another `name`, it does not inherit `name` and `context_window`.
""".splitlines()


def page() -> str:
    """Render the whole page."""
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
            "A dotted key belongs to the table of its first part: `model.name` is `name` under `[model]`.",
            "",
            *_PROFILES,
            "",
            "## Environment",
            "",
            *table(("variable", "sets"), _variable_rows()),
            "",
            "If two variables set the same key, the later row wins. An empty variable counts as unset.",
            "",
        ]
    )


def _variable_rows() -> Iterator[tuple[str, str]]:
    for variable, key in ENVIRONMENT:
        yield code(variable), code(key)
    yield code("GRAPH_AGENT_PLAIN"), "`1`: nothing on the terminal is redrawn, for screen readers"
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
            describe_key(key),
        )


def _field(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    section, _, name = key.rpartition(".")
    owner = schema
    if section:
        reference: str = schema["properties"][section]["$ref"]
        owner = schema["$defs"][reference.rpartition("/")[2]]
    field: Mapping[str, Any] = owner["properties"][name]
    return field
