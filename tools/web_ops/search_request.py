"""One request to a search service, limited in size and time; an error says what to do."""

import asyncio
import json
import zlib
from typing import Any

import httpx

from tools.result import ToolErrorType
from tools.web_ops.http import FetchError, HostNotFound, bounded_body, describe_error, open_client, parse_address
from tools.web_ops.search_services import SearchHit, SearchProvider, UnexpectedAnswer, build_request, parse_hits

__all__ = ["search_web"]

_SECONDS = 30.0
_MESSAGE_CHARS = 200
_NO_JSON = "SearXNG returns no JSON: add `json` under `search: formats:` in its settings.yml and restart it"


async def search_web(provider: SearchProvider, query: str, limit: int) -> list[SearchHit]:
    """The results for a query.

    Raises:
        FetchError: the search failed; the message says why.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            status, body = await _send(provider, query, limit)
    except TimeoutError as error:
        raise FetchError(
            ToolErrorType.TIMEOUT, f"{provider.address} did not answer in {_SECONDS:g} seconds."
        ) from error
    except HostNotFound as error:
        raise FetchError(ToolErrorType.NOT_FOUND, f"{error}; the setting web_search.url names it.") from error
    except httpx.ConnectError as error:
        hint = "is SearXNG running? The setting web_search.url says where" if provider.kind == "searxng" else error
        raise FetchError(ToolErrorType.EXECUTION, f"{provider.address} cannot be reached: {hint}.") from error
    except (httpx.HTTPError, ValueError, zlib.error, OSError) as error:
        why = describe_error(error)
        raise FetchError(ToolErrorType.EXECUTION, f"{provider.address} could not be searched: {why}.") from error
    if status != 200:
        raise FetchError(ToolErrorType.EXECUTION, _refusal(provider, status, body))
    return _read(provider, body, limit)


async def _send(provider: SearchProvider, query: str, limit: int) -> tuple[int, bytes]:
    request = build_request(provider, query, limit)
    address = parse_address(request.url)
    headers = {**request.headers, "Accept": "application/json"}
    # The user configured this address: their own SearXNG may be on this machine or in their network.
    async with (
        open_client(address, may_be_private=True) as client,
        client.stream(request.method, address.url, headers=headers, json=request.body) as response,
    ):
        body, _ = await bounded_body(response)
        return response.status_code, body


def _read(provider: SearchProvider, body: bytes, limit: int) -> list[SearchHit]:
    try:
        return parse_hits(provider, json.loads(body), limit)
    except UnexpectedAnswer as error:
        raise FetchError(ToolErrorType.EXECUTION, f"{provider.address} is not {provider.kind}: {error}.") from error
    except (ValueError, RecursionError) as error:
        hint = _NO_JSON if provider.kind == "searxng" else "this is not a response of the service"
        raise FetchError(ToolErrorType.EXECUTION, f"{provider.address} answered without JSON; {hint}.") from error


def _refusal(provider: SearchProvider, status: int, body: bytes) -> str:
    start = f"{provider.address} answered {status}"
    if status == 429:
        return f"{start}: too many requests. Wait before you search again, or continue without."
    if provider.kind == "searxng" and status == 403:
        return f"{start}; {_NO_JSON}."
    if status in (401, 403):
        variable = f"{provider.kind.upper()}_API_KEY"
        return f"{start}: it rejects the key. The user sets it: web_search.api_key, or {variable}."
    message = " ".join("".join(char if char.isprintable() else " " for char in _message(body)).split())
    return f"{start}{f': {message[:_MESSAGE_CHARS]}' if message else ''}."


def _message(body: bytes) -> str:
    """The error message in a JSON response; empty for a web page."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    while isinstance(answer, dict):
        answer = next((answer[key] for key in ("error", "detail", "message") if key in answer), "")
    return answer if isinstance(answer, str) else ""
