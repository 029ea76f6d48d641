import socket
from collections.abc import Mapping
from typing import Any

import httpx
import openai
import pytest

from graph_agent.config.settings import ModelSettings
from graph_agent.model.openai.client import request_target
from graph_agent.model.openai.errors import (
    BrokenReply,
    Failure,
    ServerError,
    Target,
    classify_error,
    parse_retry_after,
)

_SET_BY = {"base_url": "GRAPH_AGENT_BASE_URL", "api_key": "OPENAI_API_KEY", "name": "GRAPH_AGENT_MODEL"}
PLACE = Target("https://host/v1", "m", has_key=True, secrets=("topsecret",), set_by=_SET_BY)


class ConnectError(Exception):
    """Named as the HTTP library names it."""


class TooManyRedirects(Exception):
    """Likewise."""


def connection_error(*causes: Exception) -> openai.APIConnectionError:
    error = openai.APIConnectionError(request=None)  # type: ignore[arg-type] # no request was made
    outer: Exception = error
    for cause in causes:
        outer.__cause__ = cause
        outer = cause
    return error


def test_a_certificate_that_is_not_trusted_is_final_and_names_the_settings() -> None:
    words = "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate"

    failure = classify_error(connection_error(ConnectError(words), ValueError(words)), PLACE)

    assert failure == Failure(
        "final",
        f"The certificate of https://host/v1 is not trusted ({words}): "
        "name the right certificates with SSL_CERT_FILE, or with ca_file under [model].",
    )


@pytest.mark.parametrize("cause", [ConnectError("refused"), socket.gaierror(-2, "unknown name")])
def test_an_unreachable_server_differs_from_a_lost_connection(cause: Exception) -> None:
    unreachable = classify_error(connection_error(cause), PLACE)
    broken = classify_error(connection_error(ValueError("disconnected")), PLACE)

    assert (unreachable.kind, broken.kind) == ("unreachable", "broken")


def test_a_proxy_in_between_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:topsecret@proxy:3128")
    through = classify_error(connection_error(ConnectError("refused")), PLACE).message
    monkeypatch.setenv("NO_PROXY", "host")
    around = classify_error(connection_error(ConnectError("refused")), PLACE).message

    assert ("through the proxy http://" in through, "topsecret" in through) == (True, False)
    assert "proxy" not in around


@pytest.mark.parametrize(
    ("base_url", "origins", "advice"),
    [
        (None, {"model.api_key": "OPENAI_API_KEY"}, "is this machine online?"),
        ("http://h/v1", {"model.base_url": "GRAPH_AGENT_BASE_URL"}, "is GRAPH_AGENT_BASE_URL right?"),
        ("http://h/v1", {"model.base_url": "/c/config.toml"}, "is base_url in /c/config.toml right?"),
    ],
)
def test_advice_names_only_what_is_set_and_where(
    base_url: str | None, origins: Mapping[str, str], advice: str
) -> None:
    target = request_target(ModelSettings(base_url=base_url), "m", origins)

    assert classify_error(connection_error(ConnectError("refused")), target).message.endswith(advice)


def test_an_address_that_leads_in_a_circle_is_final() -> None:
    failure = classify_error(connection_error(TooManyRedirects("Exceeded maximum allowed redirects.")), PLACE)

    assert (failure.kind, "GRAPH_AGENT_BASE_URL" in failure.message) == ("final", True)


def test_error_bodies_without_a_message_are_shown() -> None:
    said = {"error": None, "detail": [{"loc": ["body"], "msg": "field required"}]}

    assert "field required" in classify_error(ServerError(said), PLACE).message


def test_secrets_and_control_characters_never_reach_the_line() -> None:
    said = ServerError({"message": "bad key topsecret\x1b[2K or sk-abc123\nretry", "code": 401})

    assert classify_error(said, PLACE).message == (
        "https://host/v1 rejected the key (401: bad key …?[2K or sk-… retry [401]): "
        "check OPENAI_API_KEY and GRAPH_AGENT_BASE_URL."
    )


@pytest.mark.parametrize(
    "said",
    [
        {"message": "prompt is too long: 9001 tokens > 8192 maximum"},
        {"message": "the request exceeds the available context size", "code": 500},
        {"message": "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000", "code": 400},
        {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096", "code": 422},
        {"message": "This model's maximum context length is 8192 tokens.", "code": "400"},
        {"message": "input token count (9001) exceeds the maximum number of tokens allowed (8192)", "code": 400},
        {"message": "too large", "code": 413},
        {"message": "", "code": "context_length_exceeded"},
    ],
)
def test_a_too_long_request_is_recognised_by_the_error_message(said: dict[str, Any]) -> None:
    assert classify_error(ServerError(said), PLACE).kind == "too_long"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"message": "Incorrect key", "code": "invalid_api_key"}, "final"),
        ({"message": "bad request", "type": "invalid_request_error", "code": None}, "final"),
        ({"message": "no such model", "code": "404"}, "final"),
        ({"message": "slow down", "type": "rate_limit_error"}, "busy"),
        ({"message": "tokens per minute: reduce the length of the messages", "code": 429}, "busy"),
        ({"message": "overloaded", "type": "overloaded_error"}, "busy"),
        ({"message": "odd", "code": True, "status": -1}, "busy"),
        ({"message": "odd", "code": "9" * 5_000}, "busy"),
        ("only words", "busy"),
    ],
)
def test_an_error_within_a_stream_is_classified_by_its_code(said: Any, kind: str) -> None:
    assert classify_error(ServerError(said), PLACE).kind == kind


def test_a_long_message_is_cut() -> None:
    failure = classify_error(BrokenReply("x" * 1000), PLACE)

    assert failure.message == f"The reply of https://host/v1 was cut off ({'x' * 300}…)."


@pytest.mark.parametrize(
    ("header", "wait"),
    [("2", 2.0), ("1.5", 1.5), ("-1", 0.0), ("Thu, 01 Jan 2015 00:00:00 GMT", 0.0), ("soon", None), ("", None)],
)
def test_retry_after_is_seconds_or_a_date(header: str, wait: float | None) -> None:
    assert parse_retry_after({"retry-after": header} if header else {}) == wait


def test_retry_after_in_milliseconds_comes_first() -> None:
    assert parse_retry_after({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert parse_retry_after({"retry-after-ms": "soon", "retry-after": "2"}) == 2.0


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (
            400,
            [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}],
            (
                "https://host/v1 rejected the key (400: API key not valid. [400]): check OPENAI_API_KEY and "
                "GRAPH_AGENT_BASE_URL."
            ),
        ),
        (
            422,
            {"detail": [{"loc": ["body", "messages"], "msg": "field required"}, {"loc": [], "msg": "no"}]},
            "https://host/v1 rejected the request (422: body.messages: field required; : no).",
        ),
        (
            502,
            "<html><head><style>x</style><title>502 Bad</title></head><body><h1>Gateway</h1></body></html>",
            "https://host/v1 cannot serve the request now (502: 502 Bad Gateway).",
        ),
    ],
)
def test_errors_in_lists_and_web_pages_become_one_line(status: int, body: Any, line: str) -> None:
    request = httpx.Request("POST", "https://host/v1")
    response: Any = httpx.Response(status, request=request)
    error = openai.APIStatusError("said", response=response, body=body)

    assert classify_error(error, PLACE).message == line
