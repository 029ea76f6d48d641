"""Tools that access the web. Each is loaded when it is asked for."""

from typing import TYPE_CHECKING

from tools import load_on_demand

if TYPE_CHECKING:
    from tools.web_ops.web_fetch import WebFetchTool
    from tools.web_ops.web_search import WebSearchTool

__all__ = [
    "WebFetchTool",
    "WebSearchTool",
]

if not TYPE_CHECKING:  # For a type checker every name would be there.
    __getattr__ = load_on_demand(
        __name__,
        {
            "WebFetchTool": "web_fetch",
            "WebSearchTool": "web_search",
        },
    )
