"""The sandbox around the programs that the agent starts: what it allows, and the system's means that enforce it."""

from tools.sandbox.protected_paths import ProtectedNames, SandboxRules
from tools.sandbox.sandbox import (
    ResourceLimits,
    Sandbox,
    SandboxBackend,
    SandboxLaunch,
    SandboxUnavailable,
    detect_backend,
)

__all__ = [
    "ProtectedNames",
    "ResourceLimits",
    "Sandbox",
    "SandboxBackend",
    "SandboxLaunch",
    "SandboxRules",
    "SandboxUnavailable",
    "detect_backend",
]
