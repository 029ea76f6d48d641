"""The walls around what the agent starts: what they let through, and which of the system's means keep them."""

from tools.sandbox.probe import Means, probed
from tools.sandbox.sandbox import Confined, NoSandbox, Sandbox
from tools.sandbox.terms import Names, Terms

__all__ = ["Confined", "Means", "Names", "NoSandbox", "Sandbox", "Terms", "probed"]
