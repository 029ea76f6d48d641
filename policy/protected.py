"""Names of files that decide what runs later or hold keys: every write to them asks, whatever rule allows it."""

from functools import lru_cache
from pathlib import PurePath

__all__ = ["PROTECTED_FILES", "PROTECTED_FOLDERS", "PROTECTED_IN_PROJECTS", "is_protected", "is_protected_in"]

PROTECTED_FOLDERS = frozenset(
    [
        # repositories
        ".git", ".hg", ".svn", ".bzr", ".jj",
        # agents and editors
        ".graph-agent", ".agents", ".aider", ".amazonq", ".claude", ".clinerules", ".codeium", ".codex",
        ".continue", ".cursor", ".devcontainer", ".emacs.d", ".fleet", ".gemini", ".goose", ".idea", ".kiro",
        ".opencode", ".roo", ".vim", ".vscode", ".windsurf", ".zed",
        # programs started automatically
        ".husky", ".cargo", "systemd", "autostart",
        # keys
        ".aws", ".azure", ".docker", ".gnupg", ".kube", ".password-store", ".ssh",
    ]
)  # fmt: skip
PROTECTED_FILES = frozenset(
    [
        # shells and sessions
        ".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cshrc", ".inputrc",
        ".kshrc", ".login", ".logout", ".mkshrc", ".pam_environment", ".profile", ".screenrc", ".tcshrc",
        ".tmux.conf", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".zlogin", ".zlogout", ".zprofile",
        ".zshenv", ".zshrc", "config.fish",
        # programs that run what their configuration says
        ".curlrc", ".env", ".envrc", ".gdbinit", ".gitattributes", ".gitconfig", ".gitmodules", ".hgrc",
        ".lldbinit", ".npmrc", ".pnpmfile.cjs", ".pre-commit-config.yaml", ".ripgreprc", ".wgetrc", ".yarnrc",
        ".yarnrc.yml",
        # agents, editors, servers for them
        ".aider.conf.yml", ".cursorrules", ".dir-locals.el", ".emacs", ".exrc", ".goosehints", ".mcp.json",
        ".nvim.lua", ".nvimrc", ".vimrc", ".windsurfrules", "mcp.json", "opencode.json",
        # keys
        ".git-credentials", ".netrc", ".pgpass", ".pypirc", "authorized_keys", "id_dsa", "id_ecdsa",
        "id_ed25519", "id_rsa",
    ]
)  # fmt: skip
_OTHERS = (".config/fish/", ".config/git/", ".config/nvim/")
PROTECTED_IN_PROJECTS = frozenset(
    [
        ".git", ".hg", ".svn", ".jj",
        ".graph-agent", ".agents", ".claude", ".codex", ".cursor", ".devcontainer", ".gemini", ".husky", ".idea",
        ".opencode", ".vscode", ".zed",
        ".env", ".envrc", ".gitattributes", ".gitmodules", ".mcp.json", ".npmrc", ".pre-commit-config.yaml",
    ]
)  # fmt: skip
"""The hidden ones among them that programs look for at the top of any project."""
_KEY_ENDINGS = (".pem", ".key", ".p12", ".pfx", ".keystore", ".jks", ".kdbx")


def is_protected(path: PurePath) -> bool:
    """Whether a resolved path is, or lies below, a protected name; letter case does not matter on any system."""
    parts = [part.casefold() for part in path.parts]
    if any(part in PROTECTED_FOLDERS for part in parts) or any(other in "/".join(parts) for other in _OTHERS):
        return True
    name = parts[-1] if parts else ""
    is_environment = name.startswith((".env.", ".envrc.")) or name.endswith(".env")
    return name in PROTECTED_FILES or is_environment or name.endswith(_KEY_ENDINGS)


@lru_cache(maxsize=2048)
def is_protected_in(path: PurePath, workspace: PurePath) -> bool:
    """The same for a path seen from a workspace, which may itself be below a protected name."""
    return is_protected(path.relative_to(workspace) if path.is_relative_to(workspace) else path)
