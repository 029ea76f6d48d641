"""Tools of others: where they are found, and what is wrong with those that cannot be used. Registers nothing."""

from tools.plugins.loading import Found, PluginTool, load
from tools.plugins.sources import Source, from_entry_points, from_line, from_text

__all__ = ["Found", "PluginTool", "Source", "from_entry_points", "from_line", "from_text", "load"]
