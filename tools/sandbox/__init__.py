"""The walls around what the agent starts: what they let through, and which of the system's means keep them."""

from tools.sandbox.mounts import Names, Terms
from tools.sandbox.sandbox import Confined, Means, NoSandbox, Sandbox, probed

__all__ = ["Confined", "Means", "Names", "NoSandbox", "Sandbox", "Terms", "probed"]
