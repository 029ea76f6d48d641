"""What all pages share: the server's options, the frame of a page, forms, and how failures are shown."""

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from graph_agent.errors import AgentError, AnswerRefused, StorageError, ThreadHeld, UnknownId, UsageError
from graph_agent.web.guard import Access, same_secret
from graph_agent.web.live import LiveUpdates, Region, version_of
from graph_agent.web.rendering import render

if TYPE_CHECKING:
    from graph_agent.web.runner import ThreadRunner

__all__ = ["Form", "Outcome", "Refused", "Site", "address", "number_in"]

_MAX_FORM_BYTES = 1024 * 1024
_MAX_FIELDS = 2_000
_MAX_NOTICES = 50
_PAGES = frozenset(
    ("/", "/threads", "/thread", "/tasks", "/task", "/state", "/calls", "/call", "/files", "/diff", "/value")
)
"""Where a form may lead back to."""
_STATUS: Sequence[tuple[type[AgentError], int]] = (
    (UnknownId, 404),
    (AnswerRefused, 409),
    (ThreadHeld, 409),
    (UsageError, 400),
    (StorageError, 503),
)


class Refused(HTTPException):
    """A request that cannot be served; its text is shown as a page."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a form led to."""

    notice: Sequence[str]
    """Shown at the top of the next page."""
    target: str
    """The address of that page."""


class Form:
    """The fields of a form that one of our pages sent."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """The first value of a field, with the line breaks of Unix; empty if it was left out."""
        return self._fields.get(name, [""])[0].replace("\r\n", "\n").replace("\r", "\n")

    def require(self, name: str) -> str:
        """The first value of a field that must not be blank.

        Raises:
            Refused: it is missing or blank.
        """
        value = self.text(name)
        if not value.strip():
            raise Refused(400, f"The field {name!r} is missing from the form. Nothing was changed.")
        return value

    def choice(self, name: str, *choices: str) -> str:
        """The value of a field that has only these.

        Raises:
            Refused: it has another one.
        """
        value = self.text(name)
        if value not in choices:
            raise Refused(400, f"{name} {value[:40]!r} is not one of {', '.join(choices)}. Nothing was changed.")
        return value

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return self._fields.get(name, [])

    def back(self) -> str:
        """The page the form was on; the inbox if that is not one of ours."""
        wanted = self.text("back")
        try:
            parts = urlsplit(wanted)
        except ValueError:
            return "/"
        is_own = not (parts.scheme or parts.netloc or "\\" in wanted) and parts.path in _PAGES
        return wanted if is_own and wanted.isprintable() else "/"


def address(path: str, /, **query: str | int | None) -> str:
    """The address of a page, without the parts of the query that are empty."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def number_in(request: Request, name: str, otherwise: int = 1, most: int = 1_000_000) -> int:
    """A positive number in an address; whatever else is written there counts as `otherwise`."""
    text = request.query_params.get(name, "")
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    return int(text) if is_number and 0 < int(text) <= most else otherwise


@dataclass
class Site:
    """One running server."""

    database: Path
    access: Access
    is_read_only: bool = False
    runner: "ThreadRunner | None" = None
    """None: this process runs no thread."""
    live: LiveUpdates = field(init=False)
    _notices: "OrderedDict[str, Sequence[str]]" = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.live = LiveUpdates(self.database)

    @property
    def author(self) -> str:
        """By whom answers are given, as other places show it."""
        return f"web pid {os.getpid()}"

    def values(self, **values: Any) -> dict[str, Any]:
        """The values that every template may use."""
        return {
            "address": address,
            "can_run": self.runner is not None,
            "csrf": self.access.csrf,
            "read_only": self.is_read_only,
            **values,
        }

    def page(
        self,
        request: Request,
        template: str,
        *,
        title: str,
        regions: Sequence[Region] = (),
        code: int = 200,
        **values: Any,
    ) -> Response:
        """A whole page; what is in its regions is kept up to date while it is open."""
        here = address(
            request.url.path, **{name: one for name, one in request.query_params.items() if name != "notice"}
        )
        # Popped: a notice is shown once, also if the page is loaded again.
        notice = self._notices.pop(request.query_params.get("notice", ""), ())
        live = {name: one for name, one in request.query_params.items() if name not in ("notice", "path", "seen")}
        frame = {
            "here": here,
            "live": address("/live", **live, path=request.url.path, seen=version_of(regions)) if regions else "",
            "notice": notice,
            "path": request.url.path,
            "regions": {region.id: region for region in regions},
            "title": title,
        }
        return HTMLResponse(render(template, self.values(**frame, **values)), code)

    def after(self, outcome: Outcome) -> Response:
        """Lead on to the page that shows what a form led to."""
        target = outcome.target
        if outcome.notice:
            name = token_urlsafe(8)
            self._notices[name] = outcome.notice
            while len(self._notices) > _MAX_NOTICES:
                self._notices.popitem(last=False)
            target, _, fragment = target.partition("#")
            target = f"{target}{'&' if '?' in target else '?'}notice={name}{f'#{fragment}' if fragment else ''}"
        return RedirectResponse(target, 303)

    def action(self, work: Callable[[Form], Awaitable[Outcome]]) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint of a form: only with the token of this server, and never while the pages are read-only."""

        async def endpoint(request: Request) -> Response:
            form = await self._form(request)
            if not same_secret(form.text("csrf"), self.access.csrf):
                raise Refused(403, "The form comes from an older page. Go back, reload the page and try again.")
            if self.is_read_only:
                raise Refused(403, "This server was started with --read-only. Nothing was changed.")
            return self.after(await work(form))

        return endpoint

    async def _form(self, request: Request) -> Form:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
        if kind != "application/x-www-form-urlencoded":
            raise Refused(415, "Forms are sent as application/x-www-form-urlencoded. Nothing was changed.")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MAX_FORM_BYTES:
                raise Refused(413, "The form is larger than 1 MB. Nothing was changed.")
        try:
            text = bytes(body).decode()
            return Form(parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS))
        except ValueError as error:
            raise Refused(400, "The form cannot be read: it is not UTF-8, or has too many fields.") from error

    async def failure(self, request: Request, error: Exception) -> Response:
        """A page that says what happened."""
        match error:
            case HTTPException(status_code=status, detail=text):
                pass
            case AgentError():
                status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
                text = str(error)
            case _:
                status, text = (
                    500,
                    "Something failed inside the server. See the output of graph-agent web.",
                )
        title = HTTPStatus(status).phrase
        return self.page(request, "message.html", title=title, code=status, text=text)
