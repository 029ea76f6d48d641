"""How a server of the Model Context Protocol is started or reached: table `[mcp_servers.NAME]`. Values only."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from graph_agent.config.model_settings import HeaderValue, Section, is_http_url

__all__ = ["McpServer"]


def _address(value: str) -> str:
    if not is_http_url(value.strip()) or "#" in value:
        raise ValueError(
            "should be an address that starts with http:// or https://, e.g. http://localhost:8000/mcp"
        )
    return value.strip()


class McpServer(Section):
    """A table `[mcp_servers.NAME]`: a server of the Model Context Protocol, started or reached."""

    command: str | None = Field(default=None, min_length=1)
    """Program to start; it speaks the protocol on its input and output."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: dict[str, SecretStr] = Field(default={})
    """Variables the program gets besides a minimal environment; `${NAME}` stands for one of the agent's own."""
    url: Annotated[str, AfterValidator(_address)] | None = None
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
    """Whether it reaches the network from there."""
    enabled: bool = True
    """Whether it is used at all; false keeps its table without starting it."""
    tools: tuple[str, ...] | None = None
    """Names of its tools, as the server spells them, that are offered; without it all, `*` stands for any text."""
    disabled_tools: tuple[str, ...] = ()
    """Names of its tools that are not offered; `*` as above."""

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("should have either a command or a url")
        return self
