"""What can be set, as frozen values with their defaults. Knows no file, no environment and no flag."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from graph_agent.config.hook_settings import HookSettings
from graph_agent.config.model_settings import OPENAI_BASE_URL, HeaderValue, ModelSettings, Price, Section
from graph_agent.config.search_settings import SearchSettings
from graph_agent.config.server_settings import McpServer

__all__ = [
    "OPENAI_BASE_URL",
    "ExampledRule",
    "HeaderValue",
    "McpServer",
    "Mode",
    "ModelSettings",
    "PolicySettings",
    "Settings",
]

Mode = Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]


class ExampledRule(Section):
    """A rule with examples, `{rule = "bash(git commit*)", match = ["git commit"], not_match = ["git push"]}`."""

    rule: str
    match: tuple[str, ...] = ()
    """What it must cover: commands, paths, addresses; names of tools where it speaks of a whole tool."""
    not_match: tuple[str, ...] = ()
    """What it must not cover."""


class PolicySettings(Section):
    """Table `[policy]`: rules such as `bash(git status*)`, each a text or a table with examples."""

    allow: tuple[str | ExampledRule, ...] = ()
    """What runs without asking: rules, each a text or a table `{rule, match, not_match}` with examples."""
    ask: tuple[str | ExampledRule, ...] = ()
    """What always asks; rules as in `allow`."""
    deny: tuple[str | ExampledRule, ...] = ()
    """What never runs; rules as in `allow`."""

    def rules(self, kind: Literal["allow", "ask", "deny"]) -> tuple[ExampledRule, ...]:
        """The rules of one list, all of them in the long form."""
        entries: tuple[str | ExampledRule, ...] = {"allow": self.allow, "ask": self.ask, "deny": self.deny}[kind]
        return tuple(ExampledRule(rule=entry) if isinstance(entry, str) else entry for entry in entries)


def _of_an_endpoint(profile: ModelSettings) -> ModelSettings:
    if profile.local is not None:
        raise ValueError("should have no key 'local': a local model stands in [model] alone")
    return profile


class Settings(Section):
    """All settings of one process."""

    model: ModelSettings = ModelSettings()
    models: dict[str, Annotated[ModelSettings, AfterValidator(_of_an_endpoint)]] = Field(default={})
    """Profiles, each a table `[models.NAME]` with the keys of `[model]`, chosen by that name."""
    policy: PolicySettings = PolicySettings()
    mode: Mode = "default"
    """Permission mode of new threads; bypassPermissions is taken from the flag only."""
    sandbox: Literal["off", "on", "required"] = "on"
    """Whether commands and servers run in a sandbox: on takes the best there is here, and says what that is; with
    required nothing of the kind runs where there is none."""
    sandbox_network: bool = False
    """Whether commands in the sandbox reach the network."""
    speculative_reads: bool = True
    """Whether reads inside the workspace that no rule asks about begin while the model's reply still arrives."""
    sandbox_write: tuple[str, ...] = ()
    """Folders that commands in the sandbox may write besides the workspace, e.g. a package cache."""
    bell: bool = False
    """Whether the chat rings the bell when a question waits, and when a turn of 20 seconds or more ends."""
    background_shells: Literal["end", "keep"] = "end"
    """What becomes of background shells when the session ends: end them, or keep them for the next one."""
    max_steps: int = Field(default=200, ge=1)
    """Model requests per turn; reaching it pauses the turn, resumable."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens that the requests of one turn may use; pauses like `max_steps`."""
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """What the requests of one turn may cost; needs the price of the model in `prices`."""
    max_thread_tokens: int | None = Field(default=None, ge=1)
    """Tokens that all requests of a thread may use."""
    max_thread_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """What all requests of a thread may cost."""
    prices: dict[str, Price] = Field(default={})
    """What models cost a million tokens, each a table `[prices."MODEL"]` with input, output and cached_input."""
    currency: str = Field(default="USD", min_length=1, max_length=8)
    """The currency of `prices` and of budgets."""
    max_task_depth: int = Field(default=2, ge=0)
    """How deep sub-agents may be nested; with 0 there are none."""
    keep_turns: int = Field(default=50, ge=1)
    """Turns of a thread that stay travelable: older checkpoints go when it is pruned, by itself at rest."""
    add_dirs: tuple[Path, ...] = ()
    """Further folders every thread may read and write in as in its workspace; absolute, or with `~`."""
    mcp_servers: dict[str, McpServer] = Field(default={})
    """Servers of the Model Context Protocol by name, each a table `[mcp_servers.NAME]`."""
    mcp_wait: float = Field(default=10.0, ge=0)
    """Seconds a headless run waits for its servers before the first model request; the chat never waits."""
    web_search: SearchSettings = SearchSettings()
    hooks: HookSettings = HookSettings()
    tools: tuple[str, ...] = ()
    """Further tools, each line `module:factory` of an installed package; a module alone gives all it declares."""
    tool_risk: dict[str, Literal["low", "medium", "high"]] = Field(default={})
    """Risk of tools that are not built in, by name, in place of at least medium: `{shout = "low"}`."""
    tools_deferred_above: int = Field(default=40, ge=0)
    """How many tools of MCP servers are declared to the model; with more, it gets their names and searches."""
    database: Path
    """The database file."""
    general_model: ModelSettings | None = Field(default=None, exclude=True)
    """The table `[model]` itself, where `model` was made of it and a profile."""
    profile: str = Field(default="", exclude=True)
    """The profile that `model` was made of."""
    origins: dict[str, str] = Field(default={}, exclude=True)
    """Where each value that is no default came from, by dotted key; each item a project added has its own."""
    instructions: str = Field(default="", exclude=True)
    """What the files of a trusted project tell the model."""
    project_tools: tuple[tuple[str, str], ...] = Field(default=(), exclude=True)
    """Files with tools of a trusted project: where each stands, and its text as it was trusted."""
    project_skills: tuple[tuple[str, str], ...] = Field(default=(), exclude=True)
    """The `SKILL.md` of its skills, likewise."""
