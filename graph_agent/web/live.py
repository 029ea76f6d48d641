"""Keeps open pages up to date: watches the database file and sends what has changed, as server-sent events.

A page consists of regions, and a region of items with ids. Only items that changed are replaced, so that what a
person is typing into another one stays. All of it is HTML of the same templates that the page was made of.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from graph_agent.app.reader import database_stamp
from graph_agent.errors import AgentError
from graph_agent.ports.storage import ANSWER_POLL_S
from graph_agent.wording import escape

__all__ = ["Item", "LiveUpdates", "Region", "changes_between", "short_id", "version_of"]

_RECHECK_SECONDS = 8.0
"""A process that died writes nothing: what it held is found to be free at the next look."""
_PING_SECONDS = 15.0
_MAX_PAGES = 40


def short_id(prefix: str, *parts: object) -> str:
    """The id of an element for anything that is named by these parts, which may hold any characters."""
    return f"{prefix}-{hashlib.sha256(repr(parts).encode(errors='replace')).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Item:
    """One element of a region."""

    id: str
    html: Markup
    css: str = ""
    label: str = ""
    """What a screen reader calls it; with a label it is an article that the keyboard can reach."""

    def element(self, *, oob: bool = False) -> Markup:
        """The element; with `oob` as the one that replaces the element of this id on an open page."""
        swap = Markup(' hx-swap-oob="true"') if oob else ""
        if not self.label:
            return Markup('<div id="{}" class="{}"{}>{}</div>').format(self.id, self.css, swap, self.html)
        return Markup('<article id="{}" class="{}" tabindex="-1" aria-label="{}"{}>{}</article>').format(
            self.id, self.css, escape(self.label), swap, self.html
        )


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a page that is kept up to date."""

    id: str
    items: Sequence[Item]

    def __html__(self) -> Markup:
        """All items, for a template."""
        return Markup("\n").join(item.element() for item in self.items)


def version_of(regions: Sequence[Region]) -> str:
    """A digest of what the regions show."""
    texts = (f"{region.id}\0{item.element()}" for region in regions for item in region.items)
    return hashlib.sha256("\0".join(texts).encode(errors="replace")).hexdigest()[:16]


def changes_between(before: Sequence[Region] | None, after: Sequence[Region]) -> Iterator[Markup]:
    """What brings an open page up to date; without a known `before`, every region as a whole."""
    known = {region.id: region for region in before or ()}
    for region in after:
        old = known.get(region.id)
        if old is None or not _is_continued(old, region):
            whole = Markup('<div id="{}" hx-swap-oob="innerHTML">{}</div>')
            if old is None or old.items != region.items:
                yield whole.format(region.id, region.__html__())
            continue
        shown, now = {item.id: item for item in old.items}, {item.id for item in region.items}
        yield from (
            Markup('<div id="{}" hx-swap-oob="delete"></div>').format(item_id) for item_id in shown.keys() - now
        )
        for item in region.items:
            if item.id not in shown:
                added = Markup('<div hx-swap-oob="beforeend:#{}">{}</div>')
                yield added.format(region.id, item.element())
            elif shown[item.id] != item:
                yield item.element(oob=True)


def _is_continued(old: Region, new: Region) -> bool:
    """Whether the items that stay keep their order, and new ones follow after them."""
    were, are = [item.id for item in old.items], [item.id for item in new.items]
    staying = [one for one in were if one in set(are)]
    return are[: len(staying)] == staying


class LiveUpdates:
    """Tells every open page of one server that the database has changed."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._changed = asyncio.Event()
        self._pages = 0
        self._watch: asyncio.Task[None] | None = None
        self._is_closing = False

    @property
    def is_full(self) -> bool:
        """Whether no further page can be kept up to date."""
        return self._pages >= _MAX_PAGES

    def close(self) -> None:
        """End the streams, so that the server can end."""
        self._is_closing = True
        self._wake()

    async def stream(self, read: Callable[[], Sequence[Region]], seen: str) -> AsyncIterator[str]:
        """The events of one page, whose regions `read` reads in another thread; `seen` is what it shows now."""
        shown: Sequence[Region] | None = None
        sent = time.monotonic()
        with self._open_page():
            yield "retry: 1000\n\n"
            while not self._is_closing:
                changed = self._changed
                try:
                    regions = await asyncio.to_thread(read)
                except AgentError:
                    regions = None  # Deleted, or being replaced: a reload shows what there is.
                if regions is not None:
                    is_as_seen = shown is None and version_of(regions) == seen
                    html = "" if is_as_seen else "\n".join(changes_between(shown, regions))
                    shown = regions
                    if html:
                        yield _event(html)
                        sent = time.monotonic()
                try:
                    await asyncio.wait_for(changed.wait(), _RECHECK_SECONDS)
                except TimeoutError:
                    if time.monotonic() - sent > _PING_SECONDS:
                        yield ": still here\n\n"
                        sent = time.monotonic()

    @contextmanager
    def _open_page(self) -> Iterator[None]:
        self._pages += 1
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_file())
        try:
            yield
        finally:
            self._pages -= 1
            if not self._pages and self._watch is not None:
                self._watch.cancel()
                self._watch = None

    async def _watch_file(self) -> None:
        """One look at the file's times for all open pages."""
        stamp = database_stamp(self._database)
        while True:
            await asyncio.sleep(ANSWER_POLL_S)
            if (now := database_stamp(self._database)) != stamp:
                stamp = now
                self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _event(html: str) -> str:
    # A carriage return would end the line of an event early; in HTML it means the same as a line feed.
    lines = html.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "event: change\n" + "".join(f"data: {line}\n" for line in lines) + "\n"
