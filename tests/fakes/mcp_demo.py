"""A real MCP server, written with the protocol's SDK: `python mcp_demo.py [--wait S] [--http PORT] [--trace FILE]`.

Each tool shows one behaviour that clients have to live with. With `--trace` every effect is a line of that file.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import ToolAnnotations

__all__: list[str] = []

_OPTIONS = argparse.ArgumentParser()
_OPTIONS.add_argument("--wait", type=float, default=0)
_OPTIONS.add_argument("--http", type=int)
_OPTIONS.add_argument("--trace", type=Path)
_OPTIONS.add_argument("--resources", action="store_true")
_GIVEN = _OPTIONS.parse_args()

server = FastMCP("demo", port=_GIVEN.http or 8000, log_level="ERROR")


def _traced(line: str) -> None:
    if _GIVEN.trace:
        with _GIVEN.trace.open("a", encoding="utf-8") as trace:
            trace.write(f"{line}\n")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def ping(context: str = "") -> str:
    """Answers. Its argument is named like something that clients of ours inject."""
    return f"pong {context}".rstrip()


@server.tool()
def note(text: str, times: int = 1) -> str:
    """Has an effect that is seen from outside."""
    for _ in range(times):
        _traced(f"note {text}")
    return f"noted {text}"


@server.tool()
async def slow(seconds: float, ctx: Context) -> str:  # type: ignore[type-arg]  # the SDK finds it by the bare class
    """Tells its progress, and notes when it was told to stop."""
    try:
        for step in range(int(seconds * 20)):
            await ctx.report_progress(step, seconds * 20, f"step {step}")
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        _traced("cancelled")
        raise
    return "slept"


@server.tool()
def die() -> str:
    """Goes away in the middle of the call."""
    _traced("died")
    os._exit(3)


@server.tool()
def huge(characters: int) -> str:
    """Answers with a lot."""
    return "x" * characters


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("not today")


@server.tool()
def environment() -> str:
    """Tells which variables it was given."""
    return " ".join(sorted(os.environ))


@server.tool()
async def grow(ctx: Context) -> str:  # type: ignore[type-arg]  # the SDK finds it by the bare class
    """Offers one tool more from now on."""
    server.add_tool(lambda: "grown", name="grown", description="came later")
    await ctx.session.send_tool_list_changed()
    return "there is one more"


if _GIVEN.resources:

    @server.resource("memo://today", description="what is due")
    def memo() -> str:
        """A text."""
        return "feed the cat"

    @server.resource("logo://small", mime_type="image/png")
    def logo() -> bytes:
        """Bytes."""
        return b"\x89PNG"

    @server.resource("memo://of/{day}")
    def memo_of(day: str) -> str:
        """A text for each address of this form."""
        return f"nothing on {day}"


if __name__ == "__main__":
    sys.stderr.write("\x1b]0;taken over\x07 what servers say on the side\n")
    sys.stderr.flush()
    _traced(f"started {os.getpid()}")
    time.sleep(_GIVEN.wait)
    server.run("streamable-http" if _GIVEN.http else "stdio")
