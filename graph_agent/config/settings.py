"""The settings as frozen values with defaults, and their dotted keys."""

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

__all__ = [
    "OPENAI_BASE_URL",
    "SECRET_KEYS",
    "SELECTABLE_MODES",
    "ExampledRule",
    "Hook",
    "HookSettings",
    "McpServer",
    "Mode",
    "ModelSettings",
    "NotifySettings",
    "PolicySettings",
    "Price",
    "SearchSettings",
    "Section",
    "Settings",
    "known_keys",
    "suggest_key",
]

OPENAI_BASE_URL = "https://api.openai.com/v1"
"""Where a key without a base URL belongs."""

SECRET_KEYS = (
    *("model.api_key", "model.headers", "web_search.api_key"),
    *("notify.webhook", "notify.webhook_secret", "notify.ntfy"),
)
"""Keys whose values are never shown."""

_MAX_PRICE = 1e9
"""Of a million tokens, in any currency: the cost of a thread stays a number that JSON has."""


def _http_address(url: str, example: str, forbidden: str = "") -> str:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or any(char.isspace() or char in forbidden for char in url):
        raise ValueError(f"should be an address that starts with http:// or https://, e.g. {example}")
    return url


def _base_url(value: str) -> str:
    trimmed = value.strip().rstrip("/").removesuffix("/chat/completions")
    url = _http_address(trimmed, "http://localhost:11434/v1")
    if "?" in url or "#" in url:
        raise ValueError("should end with its path, e.g. /v1: requests have no place for what follows a ? or #")
    return url


def _collector_url(value: str) -> str:
    return _http_address(value.strip().rstrip("/"), "http://localhost:4318", "?#")


def _notification_url(value: SecretStr) -> SecretStr:
    return SecretStr(_http_address(value.get_secret_value().strip(), "https://example.org/hooks/agent", "#"))


def _search_url(value: str) -> str:
    return _http_address(value.strip().rstrip("/"), "http://localhost:8080", "?#")


def _mcp_url(value: str) -> str:
    return _http_address(value.strip(), "http://localhost:8000/mcp", "#")


def _header_value(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value().strip()
    if not (value.isascii() and value.isprintable()):
        raise ValueError("should hold ASCII characters only, as it becomes part of a request header")
    return SecretStr(value)


def _model_name(value: str) -> str:
    if not value.strip():
        raise ValueError("should name a model; `graph-agent model list` lists those there are")
    return value


def _shell_command(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError("should be a shell command")
    return text


HeaderValue = Annotated[SecretStr, AfterValidator(_header_value)]
"""A secret that is sent in a request header."""


class Section(BaseModel):
    """Settings that belong together: frozen, and with no field that is not known."""

    # Without `use_attribute_docstrings`, for which every start would parse this source; see `explain.describe_key`.
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _reject_boolean_for_number(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        kinds = {field.annotation, *get_args(field.annotation)}
        if isinstance(value, bool) and kinds & {int, float} and bool not in kinds:
            raise ValueError("Input should be a number, not true or false")
        return value


class ModelSettings(Section):
    """Table `[model]`."""

    name: Annotated[str, AfterValidator(_model_name)] | None = None
    """Name of the model; without it, the only entry of the endpoint's model list."""
    base_url: Annotated[str, AfterValidator(_base_url)] | None = None
    """Address of an OpenAI-compatible endpoint, usually ending in /v1; without it, OpenAI's own."""
    api_key: HeaderValue | None = None
    """Key of the endpoint; local servers need none."""
    headers: dict[str, HeaderValue] = {}
    """Extra request headers; hidden like keys, because they often hold one."""
    extra_body: dict[str, Any] = {}
    """Extra fields of each request body."""
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    stream: Literal["auto", "on", "off"] = "auto"
    """Whether replies are streamed; auto stops streaming if the endpoint does not support it."""
    tool_protocol: Literal["auto", "native", "prompt"] = "auto"
    """How tools are offered: native as functions, prompt as text; auto uses text if functions are not supported."""
    send_reasoning: Literal["auto", "always", "never"] = "auto"
    """Whether the reasoning of earlier replies is sent back; auto sends it if the endpoint requires it."""
    effort: Literal["auto", "none", "minimal", "low", "medium", "high", "xhigh"] = "auto"
    """How much the model reasons, sent as `reasoning_effort`; auto sends nothing, and the endpoint decides."""
    images: Literal["auto", "on", "off"] = "auto"
    """Whether images are sent; auto sends them until the endpoint rejects them."""
    fallback: tuple[str, ...] = ()
    """Profiles or models to use, in this order, while this one is unreachable or too busy."""
    timeout_s: float = Field(default=300.0, gt=0)
    """Longest wait for the next part of a reply; keep-alive data does not count."""
    connect_timeout_s: float = Field(default=10.0, gt=0)
    """Longest wait for a connection."""
    context_window: int | None = Field(default=None, gt=0)
    """Size in tokens; without it, the value from the endpoint, else from a built-in table."""
    context_reserve: int = Field(default=8_192, ge=0)
    """Tokens of the window kept free for the reply; at most a quarter."""
    compact_at: int = Field(default=80, ge=10, le=100)
    """Percent of the remaining window that a conversation may fill before it is compacted."""
    factory: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """`package.module:function` that returns a LangChain chat model; takes precedence over an endpoint."""
    local: Path | None = None
    """A GGUF file: a small model that runs in this process (extra `local`); an endpoint takes precedence."""
    local_commands: bool = True
    """Whether the offline commands come first when a message is one of them."""

    @property
    def is_configured(self) -> bool:
        """Whether there is an endpoint: a base URL or a key."""
        return self.base_url is not None or self.api_key is not None

    @property
    def endpoint(self) -> str:
        """The base URL that requests go to."""
        return self.base_url or OPENAI_BASE_URL


class Price(Section):
    """A table `[prices."MODEL"]`: what a million tokens cost, in the currency of the setting `currency`."""

    input: float = Field(ge=0, le=_MAX_PRICE, allow_inf_nan=False)
    """Price of input tokens."""
    output: float = Field(ge=0, le=_MAX_PRICE, allow_inf_nan=False)
    """Price of output tokens, including reasoning."""
    cached_input: float | None = Field(default=None, ge=0, le=_MAX_PRICE, allow_inf_nan=False)
    """Price of input tokens from the provider's cache; without it, the price of input tokens."""


class Hook(Section):
    """A table `{command, matcher, timeout, on_failure}`."""

    command: Annotated[str, AfterValidator(_shell_command)]
    """Run by /bin/sh in the workspace; gets one JSON object on its input."""
    matcher: str = ""
    """Names of tools, with `*`, separated by `|`: `bash|mcp__*`; for session_start of sources; empty for all."""
    timeout: float = Field(default=60.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds until it is ended, and counts as failed."""
    on_failure: Literal["continue", "block"] = "continue"
    """What a before_call, before_tool or user_prompt hook does to call or message if it fails otherwise than with
    exit code 2."""


class HookSettings(Section):
    """Table `[hooks]`: commands to run at certain events, see docs/hooks.md."""

    session_start: tuple[Hook, ...] = ()
    """Commands run when a thread is opened; their stdout is sent to the model with the next message."""
    user_prompt: tuple[Hook, ...] = ()
    """Commands run before each message is sent; exit code 2 blocks it, stdout is sent to the model after it."""
    before_call: tuple[Hook, ...] = ()
    """Commands run for each call that the model requests, before it is evaluated; their stdout may change it."""
    approval: tuple[Hook, ...] = ()
    """Commands run when a person has answered an approval question."""
    before_tool: tuple[Hook, ...] = ()
    """Commands run before each call, as tables `[[hooks.before_tool]]`; exit code 2 blocks the call."""
    after_tool: tuple[Hook, ...] = ()
    """Commands run after each call; with exit code 2 their stderr is sent to the model."""
    turn_end: tuple[Hook, ...] = ()
    """Commands run when a turn has finished or reached a limit."""
    on_waiting: tuple[Hook, ...] = ()
    """Commands run when a question or an interrupted call has waited for an answer for `notify.after` seconds."""
    on_finished: tuple[Hook, ...] = ()
    """Commands run when a turn of at least `notify.after` seconds has finished or reached a limit."""
    on_error: tuple[Hook, ...] = ()
    """Commands run when a turn of at least `notify.after` seconds has failed."""


class NotifySettings(Section):
    """Table `[notify]`: how a person who is away learns that a thread waits, see docs/notifications.md."""

    terminal: Literal["auto", "osc9", "osc777", "bell", "off"] = "auto"
    """How the chat notifies you of a question or the end of a turn while another window has the focus."""
    desktop: bool = False
    """Whether the desktop shows notifications, by `notify-send` or on macOS `osascript`."""
    webhook: Annotated[SecretStr, AfterValidator(_notification_url)] | None = None
    """An address that gets each notification as a POST with JSON."""
    webhook_secret: SecretStr | None = None
    """The key that signs them, as the Standard Webhooks specification describes."""
    ntfy: Annotated[SecretStr, AfterValidator(_notification_url)] | None = None
    """A topic of an ntfy server, like https://ntfy.sh/my-topic, for notifications on a phone."""
    after: float = Field(default=10.0, ge=0, allow_inf_nan=False)
    """Seconds that a question stays open, or a turn takes, before a chat notifies you; `run` does at once."""


class SearchSettings(Section):
    """Without a provider there is no web search."""

    provider: Literal["searxng", "brave", "tavily"] | None = None
    """Who is asked: a SearXNG server at `url`, or the service of Brave or Tavily with a key."""
    url: Annotated[str, AfterValidator(_search_url)] | None = None
    """Address of the SearXNG server; of a service, in place of its own."""
    api_key: HeaderValue | None = None
    """Key of the service; else BRAVE_API_KEY or TAVILY_API_KEY of the environment."""


class McpServer(Section):
    """A table `[mcp_servers.NAME]`: a server of the Model Context Protocol, started or reached."""

    command: str | None = Field(default=None, min_length=1)
    """Program to start; it speaks the protocol on its input and output."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: dict[str, SecretStr] = Field(default={})
    """Variables the program gets besides a minimal environment; `${NAME}` stands for one of the agent's own."""
    url: Annotated[str, AfterValidator(_mcp_url)] | None = None
    """Address of a server that is running already (streamable HTTP)."""
    headers: dict[str, HeaderValue] = Field(default={})
    """Extra request headers; `${NAME}` stands for a variable of the agent's environment."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds a call may take."""
    startup_timeout: float = Field(default=10.0, gt=0)
    """Seconds the server may take until its tools are known."""
    risk: Literal["low", "medium", "high"] | None = None
    """Risk of its tools; without it at least medium, whatever the server says of itself."""
    sandbox: bool = True
    """Whether the program runs in the sandbox, where there is one."""
    network: bool = False
    """Whether it may use the network in the sandbox."""
    enabled: bool = True
    """Whether it is used; false keeps its table without starting it."""
    tools: tuple[str, ...] | None = None
    """Names of its tools, as the server spells them, that are offered; without it all, `*` stands for any text."""
    disabled_tools: tuple[str, ...] = ()
    """Names of its tools that are not offered; `*` as above."""

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("should have either a command or a url")
        return self


Mode = Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]
SELECTABLE_MODES: tuple[Mode, ...] = ("default", "acceptEdits", "plan", "auto", "dontAsk")
"""The modes that a thread may switch to; bypassPermissions can only be chosen where a session starts."""


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
    """Rules for calls that need no approval, each a text or a table `{rule, match, not_match}` with examples."""
    ask: tuple[str | ExampledRule, ...] = ()
    """Rules for calls that always need approval, as in `allow`."""
    deny: tuple[str | ExampledRule, ...] = ()
    """Rules for calls that never run, as in `allow`."""
    shell_risk: Literal["call", "declared"] = "call"
    """Risk of commands in the sandbox: call judges each by what it does; declared keeps every one at high."""

    def rules(self, kind: Literal["allow", "ask", "deny"]) -> tuple[ExampledRule, ...]:
        """The rules of one list, all of them in the long form."""
        entries: tuple[str | ExampledRule, ...] = getattr(self, kind)
        return tuple(ExampledRule(rule=entry) if isinstance(entry, str) else entry for entry in entries)


def _without_local_model(profile: ModelSettings) -> ModelSettings:
    if profile.local is not None:
        raise ValueError("should have no key 'local': a local model stands in [model] alone")
    return profile


class Settings(Section):
    """All settings of one process."""

    model: ModelSettings = ModelSettings()
    models: dict[str, Annotated[ModelSettings, AfterValidator(_without_local_model)]] = Field(default={})
    """Profiles, each a table `[models.NAME]` with the keys of `[model]`, chosen by that name."""
    policy: PolicySettings = PolicySettings()
    mode: Mode = "default"
    """Permission mode of new threads; bypassPermissions is taken from the flag only."""
    sandbox: Literal["off", "on", "required"] = "on"
    """Whether commands and servers run in a sandbox: on uses the best one available; required runs nothing
    without one."""
    sandbox_network: bool = False
    """Whether commands in the sandbox may use the network."""
    speculative_reads: bool = True
    """Whether reads in the workspace that need no approval start while the reply is still streaming."""
    early_request: Literal["exact", "off"] = "exact"
    """Whether the first request of `run` or a chat is sent while the program loads, if it is exactly the turn's."""
    tool_timeout: float | None = Field(default=None, gt=0)
    """Longest time in seconds for one call, even if its tool allows more (usually 600). `new_task` is exempt; each
    call of its sub-agent is limited."""
    sandbox_write: tuple[str, ...] = ()
    """Folders besides the workspace that commands in the sandbox may write, e.g. a package cache."""
    sandbox_memory: Annotated[str, Field(pattern=r"^[1-9]\d{0,5}[kmgKMG]$")] | None = None
    """Memory that a command in the sandbox may use with all its processes, e.g. `2g` or `500m`."""
    sandbox_processes: int | None = Field(default=None, ge=1)
    """Processes that a command in the sandbox may have at once."""
    status_line: tuple[Literal["model", "mode", "sandbox", "context", "cost", "thread", "folder"], ...] = ()
    """What the status line of the chat shows, in this order; without it, all of these but the folder."""
    bell: bool = False
    """Whether the chat rings the bell for an approval, and at the end of a turn of 20 seconds or more."""
    notify: NotifySettings = NotifySettings()
    theme: Literal["auto", "dark", "light", "high-contrast"] = "auto"
    """Colours of the chat: auto suits the terminal's background; if that is unknown, its own colours are used."""
    editing_mode: Literal["emacs", "vi"] = "emacs"
    """Keys that edit a message in the chat."""
    background_shells: Literal["end", "keep"] = "end"
    """What happens to background shells when the session ends: end them, or keep them for the next one."""
    max_steps: int = Field(default=200, ge=1)
    """Model requests per turn; reaching it pauses the turn, which can be resumed."""
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
    """Turns of a thread that can be rewound to; older checkpoints are deleted while the thread is idle."""
    add_dirs: tuple[Path, ...] = ()
    """More folders in which every thread may read and write as in its workspace; absolute, or with `~`."""
    fallback_files: bool = True
    """Whether a project's files for other agents are used where it has none for this one: CLAUDE.md, GEMINI.md,
    `.cursor/rules`, and commands and skills in `.claude`."""
    mcp_servers: dict[str, McpServer] = Field(default={})
    """Servers of the Model Context Protocol by name, each a table `[mcp_servers.NAME]`."""
    mcp_wait: float = Field(default=10.0, ge=0)
    """Seconds a headless run waits for its servers before the first model request; the chat never waits."""
    otel_endpoint: Annotated[str, AfterValidator(_collector_url)] | None = None
    """An OpenTelemetry collector (OTLP over HTTP) that gets a trace of each turn; without it, nothing is sent."""
    web_search: SearchSettings = SearchSettings()
    hooks: HookSettings = HookSettings()
    tools: tuple[str, ...] = ()
    """Further tools, each line `module:factory` of an installed package; a module alone gives all it declares."""
    tool_risk: dict[str, Literal["low", "medium", "high"]] = Field(default={})
    """Risk of tools that are not built in, by name, in place of at least medium: `{shout = "low"}`."""
    tools_deferred_above: int = Field(default=40, ge=0)
    """How many tools of MCP servers are declared to the model; with more, it gets their names and searches."""
    database: Path
    """The database: a file, or `postgresql://HOST/NAME` on a server; without it, a file in the data folder."""
    general_model: ModelSettings | None = Field(default=None, exclude=True)
    """The table `[model]` itself, where `model` was made of it and a profile."""
    profile: str = Field(default="", exclude=True)
    """The profile that `model` was made of."""
    origins: dict[str, str] = Field(default={}, exclude=True)
    """Where each value that is no default came from, by dotted key; each item a project added has its own."""
    instructions: str = Field(default="", exclude=True)
    """What the files of a trusted project tell the model."""
    is_folder_untrusted: bool = Field(default=False, exclude=True)
    """The folder has project files, and the user did not trust exactly their contents."""
    project_tools: tuple[tuple[str, str], ...] = Field(default=(), exclude=True)
    """Files with tools of a trusted project: where each stands, and its text as it was trusted."""
    project_skills: tuple[tuple[str, str], ...] = Field(default=(), exclude=True)
    """The `SKILL.md` of its skills, likewise."""
    project_agents: tuple[tuple[str, str], ...] = Field(default=(), exclude=True)
    """The files of its agents, likewise."""

    @property
    def has_notifications(self) -> bool:
        """Whether something outside the terminal is notified."""
        notify, hooks = self.notify, self.hooks
        has_hooks = any((hooks.on_waiting, hooks.on_finished, hooks.on_error))
        return has_hooks or notify.desktop or notify.webhook is not None or notify.ntfy is not None

    @property
    def sandbox_memory_bytes(self) -> int | None:
        """The size that `sandbox_memory` names."""
        if self.sandbox_memory is None:
            return None
        power = "kmg".index(self.sandbox_memory[-1].lower()) + 1
        return int(self.sandbox_memory[:-1]) << 10 * power


_INTERNAL_FIELDS = frozenset(
    (
        "origins",
        "instructions",
        "is_folder_untrusted",
        "project_tools",
        "project_skills",
        "project_agents",
        "general_model",
        "profile",
    )
)


def known_keys() -> tuple[str, ...]:
    """Every key a config file may hold, dotted."""
    return tuple(_keys(Settings))


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys(field.annotation, f"{prefix}{name}.")
        elif name not in _INTERNAL_FIELDS:
            yield f"{prefix}{name}"


def suggest_key(key: str) -> str:
    """A sentence for somebody who wrote a key that does not exist."""
    known = known_keys()
    if any(one.startswith(f"{key}.") for one in known):
        return f"It is a table: write a line [{key}], and its keys below that."
    by_last_word = {one.rpartition(".")[2]: one for one in known}
    close = difflib.get_close_matches(key, known, n=1) or [
        by_last_word[word] for word in difflib.get_close_matches(key.rpartition(".")[2], by_last_word, n=1)
    ]
    return f"Did you mean {close[0]!r}?" if close else "`graph-agent config show` lists all there are."
