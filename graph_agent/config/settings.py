"""What can be set, as frozen values with their defaults. Knows no file, no environment and no flag."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

__all__ = ["OPENAI_BASE_URL", "HeaderValue", "McpServer", "Mode", "ModelSettings", "PolicySettings", "Settings"]

Mode = Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]

OPENAI_BASE_URL = "https://api.openai.com/v1"
"""Where a key without a base URL belongs."""


def _http_url(value: str) -> str:
    trimmed = value.strip().rstrip("/").removesuffix("/chat/completions")
    if not _is_http_url(trimmed):
        raise ValueError(
            "should be an address that starts with http:// or https://, e.g. http://localhost:11434/v1"
        )
    if "?" in trimmed or "#" in trimmed:
        raise ValueError("should end with its path, e.g. /v1: requests have no place for what follows a ? or #")
    return trimmed


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        is_port_sound = parts.port != 0
    except ValueError:
        return False
    has_blank = any(char.isspace() for char in text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_port_sound and not has_blank


def _header_value(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value().strip()
    if not (value.isascii() and value.isprintable()):
        raise ValueError("should hold ASCII characters only, as it becomes part of a request header")
    return SecretStr(value)


HeaderValue = Annotated[SecretStr, AfterValidator(_header_value)]
"""A secret that is sent in a request header."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ModelSettings(_Section):
    """Table `[model]`."""

    name: str | None = Field(default=None, min_length=1)
    """Model to ask for; without it, the only entry of the endpoint's model list."""
    base_url: Annotated[str, AfterValidator(_http_url)] | None = None
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
    """Whether replies are streamed; auto stops streaming where the endpoint says that it cannot."""
    timeout_s: float = Field(default=300.0, gt=0)
    """Longest silence of the endpoint within one request."""
    connect_timeout_s: float = Field(default=10.0, gt=0)
    """Longest wait for a connection."""
    context_window: int | None = Field(default=None, gt=0)
    """Tokens the model can take in."""

    @property
    def is_configured(self) -> bool:
        """Whether there is an endpoint to talk to: a base URL or a key."""
        return self.base_url is not None or self.api_key is not None

    @property
    def endpoint(self) -> str:
        """The base URL that requests go to."""
        return self.base_url or OPENAI_BASE_URL


class ExampledRule(_Section):
    """A rule with examples, `{rule = "bash(git commit*)", match = ["git commit"], not_match = ["git push"]}`."""

    rule: str
    match: tuple[str, ...] = ()
    """What it must cover: commands, paths, addresses; names of tools where it speaks of a whole tool."""
    not_match: tuple[str, ...] = ()
    """What it must not cover."""


class PolicySettings(_Section):
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


class McpServer(_Section):
    """A table `[mcp_servers.NAME]`: a server of the Model Context Protocol, started or reached."""

    command: str | None = Field(default=None, min_length=1)
    """Program to start; it speaks the protocol on its input and output."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: dict[str, SecretStr] = {}
    """Variables the program gets besides a minimal environment; `${NAME}` stands for one of the agent's own."""
    url: Annotated[str, AfterValidator(_http_url)] | None = None
    """Address of a server that is running already (streamable HTTP)."""
    headers: dict[str, HeaderValue] = {}
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
    """Whether it reaches the network from there."""

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("should have either a command or a url")
        return self


class Settings(_Section):
    """All settings of one process."""

    model: ModelSettings = ModelSettings()
    policy: PolicySettings = PolicySettings()
    mode: Mode = "default"
    """Permission mode of new threads; bypassPermissions is taken from the flag only."""
    sandbox: Literal["off", "on", "required"] = "on"
    """Whether commands and servers run in a sandbox: on takes the best there is here, and says what that is; with
    required nothing of the kind runs where there is none."""
    sandbox_network: bool = False
    """Whether commands in the sandbox reach the network."""
    sandbox_write: tuple[str, ...] = ()
    """Folders that commands in the sandbox may write besides the workspace, e.g. a package cache."""
    max_steps: int = Field(default=200, ge=1)
    """Model requests per turn; reaching it pauses the turn, resumable."""
    keep_turns: int = Field(default=50, ge=1)
    """Turns of a thread that stay travelable: older checkpoints go when it is pruned, by itself at rest."""
    add_dirs: tuple[Path, ...] = ()
    """Further folders every thread may read and write in as in its workspace; absolute, or with `~`."""
    mcp_servers: dict[str, McpServer] = {}
    """Servers of the Model Context Protocol by name, each a table `[mcp_servers.NAME]`."""
    mcp_wait: float = Field(default=10.0, ge=0)
    """Seconds a headless run waits for its servers before the first model request; the chat never waits."""
    database: Path
    """The database file."""
    origins: dict[str, str] = Field(default={}, exclude=True)
    """Where each value that is no default came from, by dotted key; each item a project added has its own."""
    instructions: str = Field(default="", exclude=True)
    """What the files of a trusted project tell the model."""
