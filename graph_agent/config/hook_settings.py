"""The hooks a user, or a trusted project, may set: commands that are run around calls. Runs none."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from graph_agent.config.model_settings import Section

__all__ = ["Hook", "HookSettings"]


def _some_command(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError("should be a shell command")
    return text


class Hook(Section):
    """A table `{command, matcher, timeout, on_failure}`."""

    command: Annotated[str, AfterValidator(_some_command)]
    """Run by /bin/sh in the workspace; gets one JSON object on its input."""
    matcher: str = ""
    """Names of tools, with `*`, separated by `|`: `bash|mcp__*`; for session_start of sources; empty for all."""
    timeout: float = Field(default=60.0, gt=0, le=3600, allow_inf_nan=False)
    """Seconds until it is ended, and counts as failed."""
    on_failure: Literal["continue", "block"] = "continue"
    """What a before_tool or user_prompt hook that fails otherwise than with exit code 2 does to call or message."""


class HookSettings(Section):
    """Table `[hooks]`: commands of the user's own, see docs/hooks.md."""

    session_start: tuple[Hook, ...] = ()
    """Commands run when a thread is opened; the model is told what they wrote to stdout with the next message."""
    user_prompt: tuple[Hook, ...] = ()
    """Commands run before each message is sent; exit code 2 keeps it back, stdout goes to the model behind it."""
    before_tool: tuple[Hook, ...] = ()
    """Commands run before each call, as tables `[[hooks.before_tool]]`; exit code 2 blocks the call."""
    after_tool: tuple[Hook, ...] = ()
    """Commands run after each call; with exit code 2 the model is told what they wrote to stderr."""
    turn_end: tuple[Hook, ...] = ()
    """Commands run when a turn has ended by itself or at a limit."""
