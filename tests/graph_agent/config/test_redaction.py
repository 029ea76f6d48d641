from pathlib import Path

import pytest
from pydantic import SecretStr

from graph_agent.config.redaction import Redactor, known_secrets, model_secrets, url_secrets
from graph_agent.config.settings import ModelSettings


def test_stars_stand_for_secrets_wherever_they_stand_and_lengths_stay() -> None:
    redact = Redactor(["sk-abcdefgh", "sk-abcdefghijk", "pässwörd", "short"])

    assert redact("a sk-abcdefghijk, sk-abcdefgh; short") == f"a {'*' * 14}, {'*' * 11}; short"
    assert redact.data("x pässwörd".encode()) == b"x " + b"*" * 10
    assert len(redact("pässwörd").encode()) == len("pässwörd".encode())
    assert redact.value({"a": ["sk-abcdefgh", 1, None], "sk-abcdefgh": ("x",)}) == {
        "a": ["*" * 11, 1, None],
        "sk-abcdefgh": ["x"],
    }


def test_without_secrets_nothing_is_changed() -> None:
    assert (Redactor()("[(*"), Redactor().data(b"\xff")) == ("[(*", b"\xff")


def test_an_endpoints_secrets_are_its_key_its_headers_and_what_stands_before_the_host() -> None:
    model = ModelSettings(
        api_key=SecretStr("sk-one"),
        headers={"X": SecretStr("Bearer two")},
        base_url="http://me:p%40ss@localhost/v1",
    )

    assert list(model_secrets(model)) == ["sk-one", "sk-one", "Bearer two", "two", "p%40ss", "p@ss"]


@pytest.mark.parametrize(
    ("url", "secrets"),
    [("http://h/v1", []), ("http://token@h", ["token", "token"]), ("http://u:@h", ["u", "u"]), ("", [])],
)
def test_a_lone_user_name_is_taken_for_a_token(url: str, secrets: list[str]) -> None:
    assert list(url_secrets(url)) == secrets


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


@pytest.mark.parametrize(
    ("config", "variables", "secrets"),
    [
        (
            _CONFIG,
            {"MY_API_KEY": "sk-of-the-shell", "SHORT_TOKEN": "ollama", "PATH": "/usr/bin:/bin"},
            (
                *("Bearer of-a-proxy-1", "handed-to-docs", "in-the-address", "of-a-proxy-1", "of-the-search"),
                *("sk-from-the-file", "sk-of-the-shell"),
            ),
        ),
        ("mode = 7", {"A_TOKEN": "12345678"}, ("12345678",)),
        (
            "",
            {"NPM_TOKEN": "undefined", "SSH_KEY": "/home/me/.ssh/id_ed25519", "OPENAI_API_KEY": "allletters"},
            ("allletters",),
        ),
    ],
    ids=["named like a key, or hidden in settings", "settings that cannot be read", "words and paths"],
)
def test_secrets_are_known_from_the_environment_and_the_settings(
    tmp_path: Path, config: str, variables: dict[str, str], secrets: tuple[str, ...]
) -> None:
    (tmp_path / "config.toml").write_text(config)

    assert known_secrets({"GRAPH_AGENT_HOME": str(tmp_path), **variables}) == secrets
