"""A browser without a window: requests to the pages within this process, signed in unless said otherwise."""

import asyncio
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from graph_agent.web.server import WebOptions, create_app, create_site
from graph_agent.web.site import Site

__all__ = ["HOST", "Pages", "open_pages", "text_of_page"]

HOST = "127.0.0.1:7420"


@dataclass
class Pages:
    """One server and one browser."""

    site: Site
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Load a page; a redirect is not followed."""
        return self.send("GET", path, headers=headers)

    def post(self, path: str, fields: Mapping[str, Any] | None = None, **headers: str) -> httpx.Response:
        """Send a form as one of our pages does."""
        form = {"csrf": self.site.access.csrf, **(fields or {})}
        return self.send("POST", path, headers={"origin": f"http://{HOST}", **headers}, data=form)

    def send(self, method: str, path: str, *, headers: Mapping[str, str], **content: Any) -> httpx.Response:
        """Any request."""
        return asyncio.run(self._send(method, path, headers, content))

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], content: Mapping[str, Any]
    ) -> httpx.Response:
        transport = httpx.ASGITransport(create_app(self.site), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            given = {name.encode(): value.encode("latin-1") for name, value in {**self.headers, **headers}.items()}
            return await client.request(method, path, headers=given, **content)

    def notice_after(self, response: httpx.Response) -> str:
        """What the page says that a form led to."""
        assert response.status_code == 303, response.text
        page = self.get(response.headers["location"]).text
        found = re.search(r'<div class="notice" role="status">(.*?)</div>', page, re.DOTALL)
        return text_of_page(found[1]) if found else ""


def open_pages(database: Path, *, signed_in: bool = True, **options: Any) -> Pages:
    """A server on a database, with a browser that has opened its first address."""
    site = create_site(WebOptions(database, **options), 7420)
    cookie = {"cookie": f"{site.access.cookie_name}={site.access.cookie}"} if signed_in else {}
    return Pages(site, cookie)


def text_of_page(page: str) -> str:
    """The text of a piece of HTML."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())
