"""The pages of `graph-agent web` in a real Chromium, beside real chats, killed servers, and other sites."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

from docs._generate.web_pictures import start_browser
from graph_agent.ports.storage import ANSWER_POLL_S
from tests.fakes.openai_server import DELAY, TC, TXT
from tests.scenarios.command import Command, scripted, until

pytestmark = pytest.mark.slow

_REQUIRED = os.environ.get("TEST_BROWSER") == "required"
"""Set by `.ci/run`, which installs the browser: there a missing one is a failure."""
_SOON_MS = 20_000
_HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script><b hx-get=/x hx-trigger=load>\u202e"
_UNNAMED = """() => [...document.querySelectorAll('button, a, input, textarea, select, article, svg')]
    .filter((one) => !(one.getAttribute('aria-label') || one.textContent || one.labels?.length))
    .filter((one) => one.type !== 'hidden').map((one) => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path("/usr/bin/chromium").exists():
        if _REQUIRED:
            pytest.fail("/usr/bin/chromium is missing, and this run requires it")
        pytest.skip("no Chromium at /usr/bin/chromium (apt install chromium)")
    with sync_playwright() as playwright:
        chromium = start_browser(playwright)
        yield chromium
        chromium.close()


class Server:
    """One `graph-agent web`, started as a person starts it."""

    def __init__(self, command: Command, *options: str, port: int = 0) -> None:
        self.process = subprocess.Popen(
            command.argv("web", "--port", str(port), *options),
            cwd=command.workspace,
            env=command.env,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.first = self.process.stdout.readline().split()[1]
        self.base = self.first.partition("/?")[0]
        self.port = int(self.base.rpartition(":")[2])

    def end(self, *, kill: bool = False) -> int:
        (self.process.kill if kill else self.process.terminate)()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return self.process.wait(20)


@contextmanager
def _served(command: Command, *options: str) -> Iterator[Server]:
    server = Server(command, *options)
    try:
        yield server
    finally:
        server.end(kill=True)


@contextmanager
def _signed_in(browser: Browser, server: Server, **options: object) -> Iterator[Page]:
    context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type]  # as the test names them
    context.set_default_timeout(_SOON_MS)
    page = context.new_page()
    page.goto(server.first)
    try:
        yield page
    finally:
        context.close()


def _live(page: Page) -> None:
    expect(page.locator("#connection")).to_have_text("live", timeout=_SOON_MS)


def test_an_answer_in_the_browser_reaches_a_chat_within_a_second_and_one_in_the_chat_the_browser(
    tmp_path: Path, browser: Browser
) -> None:
    rounds = range(3)
    names = [name for number in rounds for name in (f"web{number}", f"chat{number}")]
    script = [
        reply for name in names for reply in (TC(name, "bash", {"command": f"touch {name}"}), TXT(f"made {name}"))
    ]
    seen_by_chat, seen_by_page = list[float](), list[float]()
    with scripted(tmp_path, script) as command:
        chat = command.chat("chat", "go", "--thread", "t1")
        chat.sees("touch web0")
        with (
            _served(command) as server,
            _signed_in(browser, server) as inbox,
            _signed_in(browser, server) as transcript,
        ):
            transcript.goto(f"{server.base}/thread?id=t1")
            _live(transcript)
            for number in rounds:
                expect(inbox.locator("#questions")).to_contain_text(f"touch web{number}", timeout=_SOON_MS)
                began = time.monotonic()
                inbox.get_by_role("button", name="Run", exact=True).click()
                chat.sees("answered by you, in the browser")
                seen_by_chat.append(time.monotonic() - began)
                chat.sees(f"made web{number}")
                expect(transcript.locator("#transcript")).to_contain_text(f"made web{number}", timeout=_SOON_MS)
                _live(inbox)
                chat.enters("again")
                chat.sees(f"touch chat{number}")
                expect(inbox.locator("#questions")).to_contain_text(f"touch chat{number}", timeout=_SOON_MS)
                began = time.monotonic()
                chat.enters("y")
                expect(inbox.locator("#questions > article")).to_have_count(0, timeout=_SOON_MS)
                seen_by_page.append(time.monotonic() - began)
                chat.sees(f"made chat{number}")
                if number < rounds[-1]:
                    chat.enters("again")
                    chat.sees(f"touch web{number + 1}")
        chat.signals(15)
        chat.ends()

    assert all((command.workspace / name).exists() for name in names)
    # The design gives each of them a second, of which at most a third is waiting for the next look; a busy machine
    # may take longer for one of them, and does not for all.
    assert ANSWER_POLL_S <= 1 / 3
    assert (min(seen_by_chat) < 1, min(seen_by_page) < 1) == (True, True), (seen_by_chat, seen_by_page)


def test_a_killed_server_loses_no_question_and_the_next_one_takes_its_place(
    tmp_path: Path, browser: Browser
) -> None:
    with scripted(tmp_path, [TC("c1", "bash", {"command": "touch x"}), TXT("made x")]) as command:
        command("run", "go", "--thread", "t1")
        server = Server(command)
        with _signed_in(browser, server) as page:
            _live(page)
            server.end(kill=True)
            expect(page.locator("#connection")).to_have_text("not connected", timeout=_SOON_MS)
            again = Server(command, "--run", port=server.port)
            page.reload()
            assert "not signed in" in page.inner_text("body")
            page.goto(again.first)
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.locator(".notice")).to_contain_text("This server continues the thread")
            page.goto(f"{again.base}/thread?id=t1")
            expect(page.locator("#transcript")).to_contain_text("made x", timeout=_SOON_MS)
            expect(page.locator("#facts")).to_contain_text("idle", timeout=_SOON_MS)
            assert again.end() == 0

    assert (command.workspace / "x").exists()


def test_of_two_browsers_the_first_answer_counts_and_the_second_learns_whose_it_was(
    tmp_path: Path, browser: Browser
) -> None:
    command = Command(tmp_path)
    command("run", "run touch x", "--thread", "t1")
    with (
        _served(command) as server,
        _signed_in(browser, server) as live,
        _signed_in(browser, server, java_script_enabled=False) as still,
    ):
        _live(live)
        still.get_by_label("Feedback for the model, if you reject").fill("not now")
        still.get_by_role("button", name="Reject", exact=True).click()
        expect(live.locator("#questions")).to_contain_text("rejected by web pid", timeout=_SOON_MS)
        expect(live.get_by_role("button", name="Run", exact=True)).to_have_count(0)
        live.go_back()
        late = live.request.post(
            f"{server.base}/answer",
            headers={"origin": server.base},
            form={"csrf": "", "do": "approve"},
        )
        assert late.status == 403
        still.go_back()
        still.reload()
        assert "rejected by web pid" in still.inner_text("#questions")
    [answered] = command.json("approvals", "list")["answered"]

    assert answered["answer"] == "reject"


def test_everything_works_by_keyboard_without_scripts_and_on_a_narrow_screen(
    tmp_path: Path, browser: Browser
) -> None:
    command = Command(tmp_path)
    command("run", "run touch x", "--thread", "t1")
    command("run", f"create notes.txt with {_HOSTILE}", "--thread", "t2")
    command("run", _HOSTILE, "--thread", "t3")
    [first, _] = command.json("approvals", "list")["approvals"]
    task = command.json("tasks", "add", _HOSTILE)["task_id"]
    paths = ["/", "/threads?q=img", "/thread?id=t2", "/thread?id=t3", "/state?id=t2", "/calls", "/files?id=t2"]
    paths += ["/tasks", f"/task?id={task}"]
    paths.append(f"/call?thread={first['thread_id']}&call={first['call_id'].rpartition(':')[2]}")
    with _served(command) as server, _signed_in(browser, server, viewport={"width": 390, "height": 844}) as page:
        events: list[str] = []

        def dismiss(dialog: Dialog) -> None:
            events.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", dismiss)
        page.on("pageerror", lambda error: events.append(str(error)))
        page.on("console", lambda message: events.append(message.text) if message.type == "error" else None)
        for path in paths:
            page.goto(f"{server.base}{path}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
            assert page.evaluate(_UNNAMED) == [], path
        assert events == []
        page.goto(server.base)
        _live(page)
        page.keyboard.press("j")
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "Run":
                break
        page.keyboard.press("Enter")
        expect(page.locator(".notice")).to_contain_text("Approved")
        with _signed_in(browser, server, java_script_enabled=False) as still:
            still.get_by_text("Edit the arguments").click()
            still.get_by_label("All arguments, as one JSON object").fill("{")
            still.get_by_role("button", name="Run as edited").click()
            assert "are not JSON" in still.inner_text("main")
            still.goto(server.base)
            still.get_by_role("button", name="Reject", exact=True).click()
            assert "Rejected" in still.inner_text(".notice")

    assert command.json("approvals", "list")["approvals"] == []


def test_a_page_of_another_site_can_neither_answer_nor_embed_nor_read(tmp_path: Path, browser: Browser) -> None:
    command = Command(tmp_path)
    command("run", "run touch x", "--thread", "t1")
    with _served(command) as server, _signed_in(browser, server) as page:
        evil = (
            f'<form method="post" action="{server.base}/answers"><input name="do" value="approve">'
            f'<button>go</button></form><iframe src="{server.base}/"></iframe>'
        )
        page.route("http://evil.test/**", lambda route: route.fulfill(body=evil, content_type="text/html"))
        page.goto("http://evil.test/")
        read = "async (url) => { try { return (await fetch(url)).status } catch { return 0 } }"
        assert page.evaluate(read, f"{server.base}/") in (0, 403)
        assert "Inbox" not in "".join(frame.content() for frame in page.frames[1:])
        page.get_by_role("button", name="go").click()
        assert "Nothing was changed" in page.inner_text("body")

    assert len(command.json("approvals", "list")["approvals"]) == 1


def test_a_turn_is_steered_and_stopped_from_the_browser(tmp_path: Path, browser: Browser) -> None:
    script = [TC("c1", "bash", {"command": "touch x"}), DELAY(30, TXT("late")), TXT("after")]
    with scripted(tmp_path, script) as command:
        command("run", "go", "--thread", "t1")
        with _served(command, "--run") as server, _signed_in(browser, server) as page:
            page.goto(f"{server.base}/thread?id=t1")
            page.get_by_role("button", name="Run", exact=True).click()
            until(lambda: len(command.server.bodies) == 2)
            page.get_by_role("button", name="Stop the turn").click()
            expect(page.locator(".notice")).to_contain_text("The turn was stopped")
            expect(page.locator("#facts")).to_contain_text("stopped", timeout=_SOON_MS)
            page.get_by_label("Message").fill("and now?")
            page.keyboard.press("Control+Enter")
            expect(page.locator("#transcript")).to_contain_text("after", timeout=_SOON_MS)
            assert re.search("and now", page.inner_text("#transcript"))


def test_a_running_task_is_watched_and_cancelled_after_a_second_click(tmp_path: Path, browser: Browser) -> None:
    with scripted(tmp_path, [DELAY(60, TXT("late"))]) as command:
        with _served(command) as server, _signed_in(browser, server) as page:
            page.get_by_role("link", name="Tasks").click()
            expect(page.locator("#workers")).to_contain_text("No worker is running")
            _live(page)
            command("tasks", "add", "tidy up")
            expect(page.locator("#tasks")).to_contain_text("queued", timeout=_SOON_MS)
            worker = command.start("worker")
            until(lambda: len(command.server.requests) == 1)
            expect(page.locator("#tasks")).to_contain_text("running", timeout=_SOON_MS)
            expect(page.locator("#workers")).to_contain_text(f"process {worker.pid}", timeout=_SOON_MS)
            page.get_by_role("link", name="tidy up").click()
            page.get_by_role("link", name=re.compile("[0-9a-f]{32}")).click()
            expect(page.locator("#transcript")).to_contain_text("tidy up", timeout=_SOON_MS)
            page.go_back()
            expect(page.get_by_role("button", name="Cancel it now")).to_be_hidden()
            page.get_by_text("Cancel the task").click()
            page.get_by_role("button", name="Cancel it now").click()
            expect(page.locator(".notice")).to_contain_text("is cancelled")
            expect(page.locator("#task")).to_contain_text("cancelled", timeout=_SOON_MS)
            expect(page.get_by_role("button", name="Retry")).to_be_visible()
        command.kill(worker)
