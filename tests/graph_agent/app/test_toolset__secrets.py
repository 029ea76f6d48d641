from pathlib import Path

from graph_agent.app.toolset import known_secrets

_CONFIG = """
[model]
api_key = "sk-from-the-file"
[model.headers]
Authorization = "Bearer of-a-proxy-1"
[mcp_servers.docs]
command = "docs"
env = { DOCS = "handed-to-docs" }
[mcp_servers.net]
url = "https://x/mcp?apiKey=in-the-address&profile=not-a-secret"
[web_search]
api_key = "of-the-search"
"""


def test_what_is_named_like_a_key_and_what_the_settings_hide_is_known(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(_CONFIG)
    environment = {
        "GRAPH_AGENT_HOME": str(tmp_path),
        "MY_API_KEY": "sk-of-the-shell",
        "SHORT_TOKEN": "ollama",
        "PATH": "/usr/bin:/bin",
    }

    assert known_secrets(environment) == (
        "Bearer of-a-proxy-1",
        "handed-to-docs",
        "in-the-address",
        "of-a-proxy-1",
        "of-the-search",
        "sk-from-the-file",
        "sk-of-the-shell",
    )


def test_settings_that_cannot_be_read_do_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mode = 7")

    assert known_secrets({"GRAPH_AGENT_HOME": str(tmp_path), "A_TOKEN": "12345678"}) == ("12345678",)


def test_words_and_paths_are_no_secrets_whatever_the_variable_is_called(tmp_path: Path) -> None:
    environment = {
        "GRAPH_AGENT_HOME": str(tmp_path),
        "NPM_TOKEN": "undefined",
        "SSH_KEY": "/home/me/.ssh/id_ed25519",
        "OPENAI_API_KEY": "allletters",
    }

    assert known_secrets(environment) == ("allletters",)
