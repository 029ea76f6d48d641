import base64
import hashlib
import re
import shutil
import subprocess
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from graph_agent.app.reader import build_graph, read_database
from graph_agent.cli.export.html import html_page
from graph_agent.inspect.transcript import Transcript, read_transcript
from tests.fakes.database_rows import Rows, record_of


def _read(database: Path, *named: Any) -> Transcript:
    with read_database(database) as reader:
        return read_transcript(reader, *named)


_HOSTILE = (
    "</div></pre></style></svg></script><script>document.title='owned'</script><style>*{display:none}</style>"
    "<img src=x onerror=\"document.title='owned'\"><iframe srcdoc='x'></iframe><base href='http://h/'>"
    "<link rel=stylesheet href=//h/x.css>&lt;b&gt; --> <!-- ]]> {{7}} ' \u202egnp.exe \x1b[31mred\x07 \x00 \ufeff"
)


class Seen(HTMLParser):
    """Every tag with its attributes, and all text outside of styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile(rows: Rows, more: str = "") -> str:
    """A page about a thread that has tags wherever a thread has text."""
    bad = _HOSTILE + more
    rows.thread(title=bad, turns=1, workspace=bad, model=bad, outcome=bad)
    rows.message("user", {"content": bad})
    asked = {"id": "call_a", "name": bad, "args": {"command": bad, bad: bad}}
    rows.message("assistant", {"content": bad, "tool_calls": [asked]})
    record = record_of(
        "error",
        tool_name=bad,
        arguments={"command": bad, bad: bad},
        error_msg=bad,
        decision=bad,
        decided_by=bad,
        risk=bad,
        metadata={"diff": {"unified": f"--- {bad}\n+++ {bad}\n@@ -1 +1 @@ {bad}\n-{bad}\n+{bad}\n"}},
        started_at="2026-11-28T10:00:00.000Z",
        ended_at="2026-11-28T10:00:02.000Z",
    )
    rows.call(record)
    rows.message("tool", {"content": "\n".join([bad] * 20), "tool_call_id": "call_a"})
    return "\n".join(html_page(_read(rows.path, "t1", None), build_graph()))


def test_a_page_is_laid_out_by_turns_and_calls(rows: Rows) -> None:
    rows.thread(title="Build it", turns=1)
    rows.message("user", {"content": "go"})
    asked = {"id": "call_a", "name": "bash", "args": {"command": "make"}}
    rows.message("assistant", {"content": "", "tool_calls": [asked]})
    rows.call(record_of("success", result="ok", metadata={"diff": {"unified": "@@ -1 +1 @@\n-a\n+b\n"}}))

    page = "\n".join(html_page(_read(rows.path, "t1", None), build_graph()))

    assert '<h2 id="turn-1">Turn 1 <small>2026-11-28 10:00:00 UTC</small></h2>' in page
    assert '<div class="call success" id="call-1">' in page
    assert '<span class="hunk">@@ -1 +1 @@</span><span class="del">-a</span><span class="add">+b</span>' in page
    assert "<pre>ok</pre>" in page
    assert "<title>Thread" not in page
    assert "human_approval" in page


def test_all_content_of_the_page_is_text(rows: Rows) -> None:
    seen = Seen(hostile(rows))

    allowed = (
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "h1",
            "h2",
            "dl",
            "dt",
            "dd",
            "table",
            "tr",
            "th",
            "td",
        ),
        *("a", "svg", "rect", "g", "path", "polygon", "text", "tspan", "div", "small", "p", "strong", "code"),
        *("span", "pre", "details", "summary", "footer", "line", "defs"),
    )
    assert {tag for tag, _ in seen.tags} <= set(allowed)
    assert sum(tag == "style" for tag, _ in seen.tags) == 1
    linked = [attributes.get(name) for _, attributes in seen.tags for name in ("href", "src", "srcset", "data")]
    assert {link for link in linked if link} == {"#call-1"}
    assert [
        name for _, attributes in seen.tags for name in attributes if name.startswith("on") or name == "style"
    ] == []
    assert not set("\u202e\x1b\x07\x00\ufeff") & set(seen.text)
    assert seen.text.count("document.title='owned'</script>") > 10
    assert "\\u202egnp.exe \\x1b[31mred\\x07 \\x00 \\ufeff" in seen.text


def test_only_the_styles_of_the_page_are_allowed_by_it(rows: Rows) -> None:
    page = hostile(rows)

    [policy] = [
        str(attributes["content"])
        for tag, attributes in Seen(page).tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in styles]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert policy == f"default-src 'none'; style-src {allowed}; base-uri 'none'; form-action 'none'"


def test_a_browser_shows_the_page_without_loading_running_or_reporting_anything(rows: Rows, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium here: the page was not looked at by a browser")
    asked: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name is the library's
            return

    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    page = tmp_path / "page.html"
    page.write_text(hostile(rows, f"<img src={address}/a><style>@import '{address}/b'</style>"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run(
        [browser, *options, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    server.shutdown()
    server.server_close()

    tags = [tag for tag, _ in Seen(done.stdout).tags]
    assert {"script", "img", "iframe", "link", "base"} & set(tags) == set()
    assert asked == []
    assert [line for line in done.stderr.splitlines() if "Refused" in line or "Security Policy" in line] == []
    assert "<title>&lt;/div&gt;" in done.stdout
