import pytest
from pydantic import SecretStr

from graph_agent.config.redaction import Redactor, model_secrets, url_secrets
from graph_agent.config.settings import ModelSettings


def test_stars_stand_for_secrets_wherever_they_stand_and_lengths_stay() -> None:
    scrub = Redactor(["sk-abcdefgh", "sk-abcdefghijk", "pässwörd", "short"])

    assert scrub("a sk-abcdefghijk, sk-abcdefgh; short") == f"a {'*' * 14}, {'*' * 11}; short"
    assert scrub.data("x pässwörd".encode()) == b"x " + b"*" * 10
    assert len(scrub("pässwörd").encode()) == len("pässwörd".encode())
    assert scrub.value({"a": ["sk-abcdefgh", 1, None], "sk-abcdefgh": ("x",)}) == {
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
