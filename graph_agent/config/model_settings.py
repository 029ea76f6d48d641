"""How one model is reached and asked: table `[model]`, and each `[models.NAME]`. Values only."""

from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

__all__ = ["OPENAI_BASE_URL", "HeaderValue", "HttpUrl", "ModelSettings", "Price", "Section", "is_http_url"]

OPENAI_BASE_URL = "https://api.openai.com/v1"
"""Where a key without a base URL belongs."""

_DEAREST = 1e9
"""Of a million tokens, in any currency: what a thread costs stays a number that JSON has."""


def _http_url(value: str) -> str:
    trimmed = value.strip().rstrip("/").removesuffix("/chat/completions")
    if not is_http_url(trimmed):
        raise ValueError(
            "should be an address that starts with http:// or https://, e.g. http://localhost:11434/v1"
        )
    if "?" in trimmed or "#" in trimmed:
        raise ValueError("should end with its path, e.g. /v1: requests have no place for what follows a ? or #")
    return trimmed


def is_http_url(text: str) -> bool:
    """Whether it is an address with a host that can be asked over HTTP."""
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


def _model_name(value: str) -> str:
    if not value.strip():
        raise ValueError("should name a model; `graph-agent model list` lists those there are")
    return value


HttpUrl = Annotated[str, AfterValidator(_http_url)]
"""An address of a server, without a blank at its end."""
HeaderValue = Annotated[SecretStr, AfterValidator(_header_value)]
"""A secret that is sent in a request header."""


class Section(BaseModel):
    """Settings that belong together: frozen, and with no field that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_as_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[info.field_name or ""]
        kinds = {field.annotation, *get_args(field.annotation)}
        if isinstance(value, bool) and kinds & {int, float} and bool not in kinds:
            raise ValueError("Input should be a number, not true or false")
        return value


class ModelSettings(Section):
    """Table `[model]`."""

    name: Annotated[str, AfterValidator(_model_name)] | None = None
    """Model to ask for; without it, the only entry of the endpoint's model list."""
    base_url: HttpUrl | None = None
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
    tool_protocol: Literal["auto", "native", "prompt"] = "auto"
    """How tools are offered: native as functions, prompt as text; auto turns to text where they are refused."""
    send_reasoning: Literal["auto", "always", "never"] = "auto"
    """Whether the thinking of earlier replies is sent back; auto sends it where the endpoint insists on it."""
    images: Literal["auto", "on", "off"] = "auto"
    """Whether images that were read are sent; auto sends them until the endpoint refuses them."""
    fallback: tuple[str, ...] = ()
    """Profiles or models to ask, in this order, while this one cannot be reached or is too busy."""
    timeout_s: float = Field(default=300.0, gt=0)
    """Longest wait for the next part of a reply; what only keeps the connection open is none."""
    connect_timeout_s: float = Field(default=10.0, gt=0)
    """Longest wait for a connection."""
    context_window: int | None = Field(default=None, gt=0)
    """Tokens the model takes in; without it, what the endpoint tells, else what is known of the model."""
    context_reserve: int = Field(default=8_192, ge=0)
    """Of these, tokens kept free for the reply; at most a quarter."""
    compact_at: int = Field(default=80, ge=10, le=100)
    """Percent of the rest that a conversation fills before it is made shorter."""
    factory: str | None = Field(default=None, pattern=r"^[\w.]+:\w+$")
    """`package.module:function` of your own that makes a LangChain chat model; goes before an endpoint."""
    local: Path | None = None
    """A GGUF file: a small model that runs in this process (extra `local`); an endpoint goes before it."""
    local_commands: bool = True
    """Whether the offline command language answers first where a message is one of its commands."""

    @property
    def is_configured(self) -> bool:
        """Whether there is an endpoint to talk to: a base URL or a key."""
        return self.base_url is not None or self.api_key is not None

    @property
    def endpoint(self) -> str:
        """The base URL that requests go to."""
        return self.base_url or OPENAI_BASE_URL


class Price(Section):
    """A table `[prices."MODEL"]`: what a million tokens cost, in the currency of the setting `currency`."""

    input: float = Field(ge=0, le=_DEAREST, allow_inf_nan=False)
    """Of what the model reads."""
    output: float = Field(ge=0, le=_DEAREST, allow_inf_nan=False)
    """Of what it writes, its reasoning included."""
    cached_input: float | None = Field(default=None, ge=0, le=_DEAREST, allow_inf_nan=False)
    """Of what it reads out of the provider's cache; without it, as of anything it reads."""
