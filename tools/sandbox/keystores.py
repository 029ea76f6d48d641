"""Where keys lie in a home folder and in the system: what no command needs to see to do its work."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.sandbox.looking import is_there

__all__ = ["key_stores"]

_AT_HOME = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".password-store",
    ".huggingface",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".mozilla",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".node_repl_history",
    ".local/share/keyrings",
    ".local/share/fish/fish_history",
    ".local/share/opencode",
)
_AT_CONFIG = (
    "gcloud",
    "gh",
    "glab-cli",
    "hub",
    "git/credentials",
    "op",
    "1Password",
    "Bitwarden",
    "keepassxc",
    "sops",
    "rclone",
    "doctl",
    "pip/pip.conf",
    "google-chrome",
    "chromium",
    "BraveSoftware",
    "containers/auth.json",
)
_OF_THE_SYSTEM = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
)


def key_stores(home: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Those that exist, each as what it really is: a link may lead elsewhere."""
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    named = (*(home / name for name in _AT_HOME), *(config / name for name in _AT_CONFIG))
    found = (*named, *map(Path, _OF_THE_SYSTEM), *_host_keys())
    return tuple(dict.fromkeys(path.resolve() for path in found if is_there(path)))


def _host_keys() -> Iterator[Path]:
    try:
        yield from Path("/etc/ssh").glob("ssh_host_*_key")
    except OSError:
        return
