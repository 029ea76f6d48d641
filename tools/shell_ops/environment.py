"""What a command inherits: an allow-list of the agent's environment, and settings against programs that ask."""

from collections.abc import Mapping

__all__ = ["INTERACTION_OFF", "child_environment"]

INTERACTION_OFF: Mapping[str, str] = {
    "CI": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "MANPAGER": "cat",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
}
"""Set for every command, whatever the agent's own environment says."""

_ALLOWED = frozenset(
    [
        "CARGO_HOME",
        "GOPATH",
        "GOROOT",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "JAVA_HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "NO_PROXY",
        "NVM_DIR",
        "PATH",
        "PYENV_ROOT",
        "RUSTUP_HOME",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ]
)


def child_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command; keys and tokens are not on the list, so they never get there."""
    kept = {name: value for name, value in source.items() if name in _ALLOWED or name.startswith("LC_")}
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {**kept, **INTERACTION_OFF}
