"""Names that decide what runs later or hold keys: every write to them asks, whatever rule or mode allows it."""

from pathlib import PurePath

__all__ = ["is_protected"]

_FOLDERS = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".graph-agent",
        ".claude",
        ".codex",
        ".cursor",
        ".gemini",
        ".vscode",
        ".idea",
        ".devcontainer",
        ".husky",
        ".ssh",
        ".gnupg",
        ".aws",
        ".kube",
        ".docker",
    ]
)
_FILES = frozenset(
    [
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".envrc",
        ".gitconfig",
        ".gitmodules",
        ".gitattributes",
        ".mcp.json",
        "mcp.json",
        ".ripgreprc",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".inputrc",
        ".vimrc",
        ".exrc",
        ".tmux.conf",
        "authorized_keys",
        ".pre-commit-config.yaml",
    ]
)
_KEY_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".kdbx")


def is_protected(path: PurePath) -> bool:
    """Whether a resolved path is, or lies below, a protected name; letter case does not matter on any system."""
    parts = [part.casefold() for part in path.parts]
    if any(part in _FOLDERS for part in parts):
        return True
    name = parts[-1] if parts else ""
    is_environment = name == ".env" or name.startswith(".env.") or name.endswith(".env")
    return name in _FILES or is_environment or name.endswith(_KEY_ENDINGS)
