import socket

import openai
import pytest

from graph_agent.model.failures import BrokenReply, Failure, Place, ServerSaid, diagnose, retry_after

PLACE = Place("https://host/v1", "m", has_key=True, secrets=("topsecret",))


class ConnectError(Exception):
    """Named as the HTTP library names it."""


def connection_error(*causes: Exception) -> openai.APIConnectionError:
    error = openai.APIConnectionError(request=None)  # type: ignore[arg-type] # no request was made
    outer: Exception = error
    for cause in causes:
        outer.__cause__ = cause
        outer = cause
    return error


def test_a_certificate_that_is_not_trusted_is_final_and_names_the_settings() -> None:
    words = "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate"

    failure = diagnose(connection_error(ConnectError(words), ValueError(words)), PLACE)

    assert failure == Failure(
        "final",
        f"The certificate of https://host/v1 is not trusted ({words}): "
        "name the right certificates with SSL_CERT_FILE, or with ca_file under [model].",
    )


@pytest.mark.parametrize("cause", [ConnectError("refused"), socket.gaierror(-2, "unknown name")])
def test_a_server_that_cannot_be_reached_is_told_from_a_connection_that_broke(cause: Exception) -> None:
    unreachable = diagnose(connection_error(cause), PLACE)
    broken = diagnose(connection_error(ValueError("disconnected")), PLACE)

    assert (unreachable.kind, broken.kind) == ("unreachable", "broken")


def test_secrets_and_control_characters_never_reach_the_line() -> None:
    said = ServerSaid({"message": "bad key topsecret\x1b[2K or sk-abc123\nretry", "code": 401})

    assert diagnose(said, PLACE).line == (
        "https://host/v1 refused the key (401: bad key …?[2K or sk-… retry [401]): "
        "check OPENAI_API_KEY and GRAPH_AGENT_BASE_URL."
    )


def test_a_long_message_is_cut() -> None:
    failure = diagnose(BrokenReply("x" * 1000), PLACE)

    assert failure.line == f"The reply of https://host/v1 broke off ({'x' * 300}…)."


@pytest.mark.parametrize(
    ("header", "wait"),
    [("2", 2.0), ("1.5", 1.5), ("-1", 0.0), ("Thu, 01 Jan 2015 00:00:00 GMT", 0.0), ("soon", None), ("", None)],
)
def test_the_wait_a_server_asks_for_is_read_as_seconds_or_as_a_date(header: str, wait: float | None) -> None:
    assert retry_after({"retry-after": header} if header else {}) == wait
