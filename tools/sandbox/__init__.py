"""The walls around what the agent starts: what they let through, and which of the system's means keep them."""

from tools.sandbox.mounts import ProtectedNames, SandboxRules
from tools.sandbox.sandbox import Sandbox, SandboxBackend, SandboxLaunch, SandboxUnavailable, detect_backend

__all__ = [
    "ProtectedNames",
    "Sandbox",
    "SandboxBackend",
    "SandboxLaunch",
    "SandboxRules",
    "SandboxUnavailable",
    "detect_backend",
]
