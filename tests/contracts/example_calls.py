"""Example calls of a tool. The test file of each tool holds them; the contract test runs them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ExampleCalls"]


@dataclass(frozen=True)
class ExampleCalls:
    """Arguments that succeed, and arguments that fail, in a workspace that contains `here.txt`."""

    good: Mapping[str, Any]
    bad: Mapping[str, Any] | None
    """None: no call of this tool can fail."""
    writes_in: str = "ws/"
    """The folder, beside the workspace `ws`, in which a call that is not read-only may write."""
    needs_context: bool = False
    """Whether a call fails without a context, because it needs a user who answers or a permission."""
