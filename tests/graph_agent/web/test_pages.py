import html
import json
import re
import sqlite3
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import typer

from graph_agent.cli.commands.session import web
from graph_agent.errors import UsageError
from graph_agent.web.rendering import editable_json, excerpt, static_file, static_names
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import asking, json_of
from tests.fakes.openai_server import DELAY, TXT
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text
from tests.graph_agent.web.pages import Pages, open_pages, text_of_page
from tests.scenarios.command import Command, scripted, until

_HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</pre></textarea></title><script>alert(1)</script>",
    "<div hx-get=/x hx-trigger=load>x</div>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egpj.exe\u200b\x1b[31m\x00",
    "data: x\n\nevent: change\rdata: <b>y</b>",
    "<!--",
    "]]>",
    "&lt;b&gt;",
)


class _Elements(HTMLParser):
    """Every element with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attributes)))


def _elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Elements()
    parser.feed(page)
    return parser.seen


def _filled(rows: Rows, bad: str) -> None:
    """A thread in which every foreign text is the hostile one."""
    rows.thread("t1", title=bad, workspace=bad, model=bad, next_nodes=("human_approval",), outcome="done")
    rows.message("user", {"content": bad})
    asked = {"id": "call_b", "name": "bash", "args": {"command": bad}}
    rows.message("assistant", {"content": bad, "tool_calls": [asked]})
    shared: dict[str, Any] = {"risk_reason": bad, "reason": bad, "summary": bad}
    diff = f"--- {bad}\n+++ {bad}\n@@ -1 +1 @@\n-{bad}\n+{bad}"
    done = record_of("success", "call_b", arguments={"command": bad, bad: bad}, result=bad, **shared)
    rows.call({**done, "metadata": {"diff": {"unified": diff}}})
    rows.message("tool", {"content": bad, "tool_call_id": "call_b"})
    preview = {"kind": "diff", "text": diff}
    rows.call(record_of("awaiting_approval", "call_a", arguments={"file_path": bad}, preview=preview, **shared))
    question = {"question": bad, "options": [bad, bad]}
    rows.call({**record_of("awaiting_approval", "call_c", arguments=question, **shared), "requires_input": True})
    rows.call(record_of("awaiting_approval", "call_d", arguments={"command": bad}, **shared))
    rows.decision("approve", call_id="call_d", by=bad, reason=bad)
    options = json.dumps({"flags": {}, "host": bad, "repository": bad, "revision": bad})
    rows.task(state="failed", prompt=bad, workspace=bad, branch=bad, error=bad, added_by=bad, options=options)


@pytest.mark.parametrize("bad", _HOSTILE)
def test_no_foreign_text_becomes_markup_in_any_page(rows: Rows, bad: str) -> None:
    _filled(rows, bad)
    pages = open_pages(rows.path)
    paths = ["/", "/threads", "/threads?q=x", "/thread?id=t1", "/calls", "/call?thread=t1&call=call_b"]
    paths += ["/tasks", "/task?id=task1"]

    for path in [*paths, f"/threads?q={json.dumps(bad)[1:-1].replace('&', '%26').replace('#', '%23')}"]:
        response = pages.get(path)
        assert response.status_code == 200, (path, text_of_page(response.text))
        for tag, attributes in _elements(response.text):
            assert tag not in ("img", "iframe", "object", "embed", "base")
            assert tag != "script" or str(attributes["src"]).startswith("/static/")
            assert not [name for name in attributes if name.startswith(("on", "style"))], (tag, attributes)
            assert not {"hx-get", "hx-post", "hx-trigger"} & attributes.keys()
            assert str(attributes.get("href", "/")).startswith(("/", "#"))
        assert not re.search(r"<script[^>]*>[^<]", response.text)
        assert re.search("[\u202e\u200b\x1b\x00]", response.text) is None


@pytest.mark.parametrize("value", [*_HOSTILE[:-5], "\x7f\xad\u200d", "\U000e0041", '日本語 "quoted" \\n'])
def test_edited_arguments_come_back_as_they_were(value: str) -> None:
    shown = html.unescape(str(editable_json({"command": value})))

    assert json.loads(shown) == {"command": value}
    assert shown.replace("\n", "").isprintable()


def test_the_inbox_shows_what_is_needed_to_decide(rows: Rows) -> None:
    diff = "--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-old\n+new"
    asking(rows, risk="high", risk_reason="deletes files", preview={"kind": "diff", "text": diff})
    page = open_pages(rows.path).get("/").text

    shown = text_of_page(page)
    for part in ("1 question waits for you.", "bash", "high risk", "runs a command", "make", "-old", "+new"):
        assert part in shown
    for choice in ("approve", "reject", "edit"):
        assert f'name="do" value="{choice}"' in page
    assert "/always?" in page


def test_an_empty_server_says_so(tmp_path: Path) -> None:
    pages = open_pages(tmp_path / "none.db")

    assert "Nothing waits for you." in pages.get("/").text
    assert "No threads yet" in pages.get("/threads").text
    assert "No calls." in pages.get("/calls").text
    tasks = pages.get("/tasks").text
    assert [words in tasks for words in ("No tasks yet", "No worker is running")] == [True, True]


def _asked(page: str, call: str = "call_a") -> str:
    found = [html.unescape(one) for one in re.findall(r'name="asked" value="([^"]*)"', page)]
    return next(one for one in found if call in one)


@pytest.mark.parametrize(
    ("fields", "kind", "reason", "notice"),
    [
        ({"do": "approve"}, "approve", "", "Approved call_a. Resume with:"),
        ({"do": "reject", "reason": " not\r\nnow "}, "reject", "not\nnow", "Rejected call_a."),
    ],
)
def test_an_answer_is_recorded_once_and_the_second_learns_who_was_first(
    rows: Rows, fields: dict[str, str], kind: str, reason: str, notice: str
) -> None:
    asking(rows)
    pages = open_pages(rows.path)
    asked = _asked(pages.get("/").text)

    first = pages.notice_after(pages.post("/answer", {"asked": asked, **fields}))
    second = pages.notice_after(pages.post("/answer", {"asked": asked, "do": "approve"}))

    assert first.startswith(notice)
    words = {"approve": "approved", "reject": "rejected"}[kind]
    assert second.startswith(f"Call call_a was already {words} by web pid ")
    [answered] = json_of(rows, "approvals", "list")["answered"]
    assert (answered["answer"], answered["answered_by"]) == (kind, pages.site.author)
    assert f"{pages.site.author}" in text_of_page(pages.get("/").text)
    stored = sqlite3.connect(rows.path).execute("SELECT reason FROM decisions").fetchall()
    assert stored == [(reason,)]


def test_a_question_of_the_model_is_answered_by_option_or_in_own_words(rows: Rows) -> None:
    rows.thread(next_nodes=("human_approval",))
    odd = "second\u200b option"
    for call in ("call_a", "call_b"):
        arguments = {"question": "Which?", "options": ["first", odd]}
        rows.call({**record_of("awaiting_approval", call, arguments=arguments), "requires_input": True})
    pages = open_pages(rows.path)
    page = pages.get("/").text

    pages.post("/answer", {"asked": _asked(page), "do": "answer", "option": "1"})
    pages.post("/answer", {"asked": _asked(page, "call_b"), "do": "answer", "option": "0", "text": "neither"})
    numbers = ("9", "-1", "0000009", "0" * 5000, "1" * 5000, "1e0", "\u0661", " 1", "\0")
    refused = [
        pages.post("/answer", {"asked": _asked(page, "call_b"), "do": "answer", "option": number})
        for number in numbers
    ]

    answers = sqlite3.connect(rows.path).execute("SELECT call_id, reason FROM decisions ORDER BY 1").fetchall()
    assert answers == [("call_a", odd), ("call_b", "neither")]
    assert [one.status_code for one in refused] == [400] * len(numbers)


def test_several_are_answered_at_once(rows: Rows) -> None:
    asking(rows)
    asking(rows, "t2")
    pages = open_pages(rows.path)
    page = pages.get("/").text
    chosen = [_asked(page, '"t1"'), _asked(page, '"t2"')]

    notice = pages.notice_after(pages.post("/answers", {"do": "reject", "reason": "later", "asked": chosen}))

    assert notice.count("Rejected call_a.") == 2
    assert json_of(rows, "approvals", "list")["approvals"] == []
    assert "Nothing was selected" in pages.notice_after(pages.post("/answers", {"do": "approve"}))


def test_an_answer_to_a_question_that_has_changed_is_refused(rows: Rows) -> None:
    asking(rows, args_digest="d1")
    pages = open_pages(rows.path)
    asked = json.loads(_asked(pages.get("/").text))

    for changed in ([*asked[:3], "other"], [*asked[:2], 2, asked[3]]):
        refused = pages.post("/answer", {"asked": json.dumps(changed), "do": "approve"})
        assert (refused.status_code, "asks something else now" in refused.text) == (409, True)

    assert json_of(rows, "approvals", "list")["answered"] == []


def test_an_interrupted_call_is_decided(rows: Rows) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing", "call_a", args_digest="d1", started_at=START))
    rows.journal("executing")
    pages = open_pages(rows.path)
    page = pages.get("/").text

    assert "outcome unknown" in text_of_page(page)
    asked = _asked(page)
    refused = pages.post("/answer", {"asked": asked, "do": "approve"})
    notice = pages.notice_after(pages.post("/answer", {"asked": asked, "do": "done", "result": "it was built"}))

    assert refused.status_code == 409
    assert notice.startswith("Marked as done: call_a.")
    stored = sqlite3.connect(rows.path).execute("SELECT kind, reason FROM decisions").fetchall()
    assert stored == [("done", "it was built")]


_FORMS = {
    "/answer": {"do": "approve"},
    "/answers": {"do": "approve", "asked": "x"},
    "/always": {"scope": "thread", "rule": "exact", "effect": "deny"},
    "/say": {"id": "t1", "message": " "},
    "/stop": {"id": "t1"},
    "/mode": {"id": "t1", "mode": "bypassPermissions"},
    "/model": {"id": "t1", "model": ""},
    "/fork": {"id": "t1", "checkpoint": "none"},
    "/rewind": {"id": "t1", "checkpoint": "none", "scope": "all"},
}
_GARBAGE = (
    b"",
    b"%",
    b"csrf=%ff%fe",
    b"\x00\xff",
    b"asked=%5B%22t1%22%5D",
    b"asked=" + b"%5B" * 5000,
    b"do=approve&scope=user&rule=exact&effect=allow&asked=%5B%22t1%22,%22call_a%22,1e999,%22d1%22%5D",
    b"a&b&&=&==",
    b"=".join([b"&a"] * 3000),
    b"x" * (1024 * 1024 + 1),
)


@pytest.mark.parametrize("form", _FORMS)
def test_garbage_in_a_form_changes_nothing_and_is_explained(rows: Rows, form: str) -> None:
    asking(rows)
    pages = open_pages(rows.path)
    prefix = f"csrf={pages.site.access.csrf}&".encode()
    headers = {"origin": "http://127.0.0.1:7420", "content-type": "application/x-www-form-urlencoded"}

    answers = [pages.post(form, _FORMS[form])]
    answers += [pages.send("POST", form, headers=headers, content=prefix + body) for body in _GARBAGE]
    answers += [pages.send("POST", form, headers={**headers, "content-type": "text/plain"}, content=prefix)]

    for response in answers:
        assert 400 <= response.status_code < 500 or response.status_code == 303, response.text
        assert "Traceback" not in response.text
    assert json_of(rows, "approvals", "list")["answered"] == []


_UNKNOWN = ("x", "", "t1/../x", "é", "t" * 5000, "%00", "'; DROP TABLE threads; --")


@pytest.mark.parametrize("unknown", _UNKNOWN)
def test_unknown_ids_are_explained(rows: Rows, unknown: str) -> None:
    asking(rows)
    pages = open_pages(rows.path)
    paths = [f"/{page}?id={{}}" for page in ("thread", "state", "files", "value", "diff")]
    paths += ["/call?thread=t1&call={}", "/call?thread={}&call=call_a", "/state?id=t1&checkpoint={}"]

    for path in paths:
        response = pages.get(path.format(unknown))
        assert response.status_code in (400, 404) or (not unknown and response.status_code in (200, 503)), path
        assert "Traceback" not in response.text
    assert pages.get(f"/always?asked={unknown}").status_code in (400, 409)
    assert pages.get(f"/live?path={unknown}").status_code == 404
    assert pages.get(f"/static/{unknown.replace('/', '%2f')}").status_code in (404, 405)
    assert pages.get(f"/?page={unknown}&notice={unknown}").status_code == 200


@pytest.mark.parametrize(
    ("back", "target"),
    [
        ("/thread?id=t1", "/thread?id=t1"),
        ("//evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/elsewhere", "/"),
        ("/\r\nset-cookie: a=b", "/"),
        ("", "/"),
        ("http://[", "/"),
    ],
)
def test_a_form_leads_back_to_our_own_pages_only(rows: Rows, back: str, target: str) -> None:
    asking(rows)
    pages = open_pages(rows.path)

    sent = pages.post("/answers", {"do": "approve", "back": back})

    location = sent.headers["location"]
    assert re.sub(r"[?&]notice=[\w-]+", "", location) == target


def test_a_message_is_queued_and_the_page_says_what_happens_with_it(rows: Rows) -> None:
    rows.thread(checkpoint_id="c1")
    pages = open_pages(rows.path)

    notice = pages.notice_after(pages.post("/say", {"id": "t1", "message": "use\r\ntabs"}))

    assert notice.startswith("Queued. The next turn begins with it:")
    assert sqlite3.connect(rows.path).execute("SELECT text FROM inbox").fetchall() == [("use\ntabs",)]


@pytest.mark.parametrize(
    ("lease", "reason"),
    [
        (None, "No process has thread t1 open"),
        ({"ended_at": START}, "No process has thread t1 open"),
        ({"boot_id": "another start"}, "No process has thread t1 open"),
        ({"process_started": "1"}, "No process has thread t1 open"),
        ({"pid": 2**22 + 1}, "No process has thread t1 open"),
        ({"host": "far"}, "Thread t1 is open on another machine, far (pid "),
        ({}, "Nothing of this thread runs now"),
    ],
)
def test_nothing_is_stopped_that_does_not_run_on_this_machine(
    rows: Rows, lease: dict[str, Any] | None, reason: str
) -> None:
    rows.thread(checkpoint_id="c1")
    if lease is not None:
        rows.lease(**lease)

    refused = open_pages(rows.path).post("/stop", {"id": "t1"})

    assert (refused.status_code, reason in text_of_page(refused.text)) == (400, True), text_of_page(refused.text)


def test_the_turn_of_a_chat_is_stopped_and_the_chat_goes_on(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(60, TXT("late")), TXT("after")]) as command:
        chat = command.chat("chat", "go", "--thread", "t1")
        chat.shows("esc to interrupt")
        until(lambda: bool(command.server.requests))
        pages = open_pages(tmp_path / "home" / "data" / "graph-agent.db")

        notice = pages.notice_after(pages.post("/stop", {"id": "t1"}))

        chat.sees("> ")
        chat.enters("and now?")
        chat.sees("after")
        chat.signals(15)
        chat.ends()
    assert notice.startswith("Process ")
    assert "was asked to stop its turn" in notice


def test_the_turn_of_a_task_is_stopped_and_its_worker_goes_on_with_others(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(60, TXT("late")), TXT("after")]) as command:
        task = command.json("tasks", "add", "first")
        worker = command.start("worker")
        until(lambda: bool(command.server.requests))
        command("tasks", "add", "second")
        pages = open_pages(tmp_path / "home" / "data" / "graph-agent.db")

        notice = pages.notice_after(pages.post("/stop", {"id": task["thread_id"]}))

        until(lambda: {one["status"] for one in command.json("tasks", "list")["tasks"]} == {"done", "cancelled"})
        is_running = worker.poll() is None
        command.kill(worker)
    assert (notice.startswith("The worker stops the turn, and its task is cancelled."), is_running) == (True, True)


_TASKS: tuple[tuple[str, dict[str, Any], list[str], str, str], ...] = (
    ("queued", {}, ["queued", "No worker begins or continues it."], "/task/cancel", "is cancelled."),
    ("failed", {"error": "no model"}, ["failed", "no model"], "/task/retry", "is queued again."),
    ("done", {"worker": "w1"}, ["done", "w1"], "", ""),
)


@pytest.mark.parametrize(("state", "columns", "shown", "action", "notice"), _TASKS)
def test_a_task_is_shown_with_its_thread_and_can_be_cancelled_or_retried(
    rows: Rows, state: str, columns: dict[str, Any], shown: list[str], action: str, notice: str
) -> None:
    rows.thread(checkpoint_id="c1")
    rows.task(state=state, **columns)
    pages = open_pages(rows.path)
    listed, page = pages.get("/tasks").text, pages.get("/task?id=task1").text

    assert [one for one in ("tidy up", state) if one not in text_of_page(listed)] == []
    assert 'href="/task?id=task1"' in listed
    assert [one for one in shown if one not in text_of_page(page)] == []
    assert 'href="/thread?id=t1"' in page
    assert re.findall(r'action="(/task/\w+)"', page) == ([action] if action else [])
    assert "/task/" not in open_pages(rows.path, is_read_only=True).get("/task?id=task1").text
    if action:
        done = pages.post(action, {"id": "task1", "back": "/task?id=task1"})
        assert notice in pages.notice_after(done)
        assert pages.post(action, {"id": "task1"}).status_code == 400


def test_the_mode_is_stored_and_a_held_thread_keeps_its_own(rows: Rows) -> None:
    rows.thread(checkpoint_id="c1", workspace=str(rows.path.parent))
    pages = open_pages(rows.path)

    assert "acceptEdits" in pages.notice_after(pages.post("/mode", {"id": "t1", "mode": "acceptEdits"}))
    assert sqlite3.connect(rows.path).execute("SELECT mode FROM threads").fetchall() == [("acceptEdits",)]


@pytest.fixture
def played(tmp_path: Path) -> tuple[Pages, list[str]]:
    replies = (calls(("c1", "read_a", {"path": "a.py"}), ("c2", "fail_b")), text("done"))
    checkpoints = play(tmp_path / "agent.db", "go", "more", replies=replies)
    return open_pages(tmp_path / "agent.db"), checkpoints


def test_the_state_shows_the_graph_the_channels_and_every_checkpoint(played: tuple[Pages, list[str]]) -> None:
    pages, checkpoints = played
    page = pages.get("/state?id=thread-1").text

    shown = text_of_page(page)
    for part in ("reasoning ×", "idle", "messages", "calls", "user message", "Fork a new thread from here"):
        assert part in shown
    assert page.count('name="a"') == page.count("<li ") > len(checkpoints)
    older = text_of_page(pages.get(f"/state?id=thread-1&checkpoint={checkpoints[0]}").text)
    assert "(not the newest)" in older


def test_two_checkpoints_are_compared(played: tuple[Pages, list[str]]) -> None:
    pages, (first, second) = played

    changed = text_of_page(pages.get(f"/diff?id=thread-1&a={first}&b={second}").text)
    same = text_of_page(pages.get(f"/diff?id=thread-1&a={first}&b={first}").text)

    assert "user: more" in changed
    assert "No differences." in same


def test_a_fork_is_made_from_a_checkpoint(played: tuple[Pages, list[str]]) -> None:
    pages, (first, _) = played

    made = pages.post("/fork", {"id": "thread-1", "checkpoint": first})

    assert pages.notice_after(made).startswith("Forked thread-1 as ")
    assert pages.get("/threads").text.count('class="row"') == 2


def test_the_transcript_has_messages_calls_and_results(played: tuple[Pages, list[str]]) -> None:
    pages, _ = played

    shown = text_of_page(pages.get("/thread?id=thread-1").text)

    for part in ("You", "go", "more", "read_a", "a.py", "fail_b", "done", "Mode and model"):
        assert part in shown


@pytest.fixture
def waiting(tmp_path: Path) -> Pages:
    command = Command(tmp_path)
    command("run", "run touch x", "--thread", "t1")
    return open_pages(tmp_path / "home" / "data" / "graph-agent.db")


@pytest.mark.parametrize(
    ("effect", "rule", "stored", "notice", "answer"),
    [
        (
            "allow",
            "exact",
            "bash(touch x)",
            "Always allowed (thread): bash(touch x)",
            ("approve", "always in this thread: bash(touch x)"),
        ),
        (
            "deny",
            "exact",
            "bash(touch x)",
            "Always denied (thread): bash(touch x)",
            ("reject", "always denied in this thread: bash(touch x). never"),
        ),
        (
            "deny",
            "prefix",
            "bash(touch *)",
            "Always denied (thread): bash(touch *)",
            ("reject", "always denied in this thread: bash(touch *). never"),
        ),
    ],
)
def test_a_rule_is_shown_before_it_is_stored_and_no_other_one_is(
    waiting: Pages, effect: str, rule: str, stored: str, notice: str, answer: tuple[str, str]
) -> None:
    inbox = waiting.get("/").text
    asked = _asked(inbox, '"t1"')
    links = [html.unescape(one) for one in re.findall(r'href="(/always[^"]*)"', inbox)]

    page = waiting.get(next(one for one in links if ("effect=deny" in one) == (effect == "deny"))).text
    shown = html.unescape(re.findall(rf'name="rules-{rule}" value="([^"]*)"', page)[0])
    fields = {"asked": asked, "scope": "thread", "rule": rule, "effect": effect, "reason": " never "}
    other = waiting.post("/always", {**fields, f"rules-{rule}": '["bash(rm *)"]'})
    moved = waiting.post(
        "/always", {**fields, f"rules-{rule}": shown, "asked": json.dumps([*json.loads(asked)[:3], "d"])}
    )
    said = waiting.notice_after(waiting.post("/always", {**fields, f"rules-{rule}": shown}))

    assert json.loads(shown) == [stored]
    assert f'value="{effect}"' in page
    assert (other.status_code, "The rule is a different one now" in other.text) == (409, True)
    assert (moved.status_code, "asks something else now" in moved.text) == (409, True)
    assert notice in said
    rows = sqlite3.connect(waiting.site.database)
    assert rows.execute("SELECT effect, json_extract(rules, '$[0].text') FROM grants").fetchall() == [
        (effect, stored)
    ]
    assert rows.execute("SELECT kind, reason FROM decisions").fetchall() == [answer]


def test_a_rewind_does_what_its_survey_said_and_nothing_else(waiting: Pages) -> None:
    oldest = re.findall(r'name="a" value="([^"]*)"', waiting.get("/state?id=t1").text)[-1]
    fields = {"id": "t1", "checkpoint": oldest, "scope": "both"}

    survey = waiting.get(f"/rewind?id=t1&checkpoint={oldest}").text
    digest = re.findall(r'name="digest" value="([^"]*)"', survey)[0]
    other = waiting.notice_after(waiting.post("/rewind", {**fields, "digest": "other"}))
    done = waiting.notice_after(waiting.post("/rewind", {**fields, "digest": digest}))

    assert "conversation and files" in text_of_page(survey)
    assert other.startswith("Nothing was changed")
    assert done.startswith("Rewound.")


def _big(rows: Rows) -> None:
    """More than fits on a page, of everything."""
    rows.thread(next_nodes=("human_approval",), checkpoint_id="c1")
    long = "\n".join(f"line {number} {'x' * 60}" for number in range(800))
    for number in range(100):
        name = f"call_{number:03}"
        rows.message("user", {"content": long})
        asked = {"id": name, "name": "bash", "args": {"command": long}}
        rows.message("assistant", {"content": long, "tool_calls": [asked]})
        diff = {"kind": "diff", "text": f"--- a\n+++ a\n{long}"}
        rows.call(record_of("awaiting_approval", name, arguments={"command": long}, preview=diff, asked_at=START))


def test_the_first_paint_takes_at_most_fifty_kilobytes(rows: Rows) -> None:
    _big(rows)
    pages, styles = open_pages(rows.path), len(static_file("app.css")[0])

    for path in ("/", "/threads", "/thread?id=t1", "/tasks", "/calls", "/call?thread=t1&call=call_001"):
        page = pages.get(path)
        assert page.status_code == 200
        assert len(page.content) + styles <= 50_000, f"{path}: {len(page.content)} + {styles}"


@pytest.mark.parametrize("path", ["/", "/threads", "/thread?id=t1", "/tasks", "/task?id=task0", "/calls"])
def test_a_page_needs_as_few_statements_with_a_thousand_threads_as_with_ten(rows: Rows, path: str) -> None:
    counts = []
    for number in range(1000):
        asking(rows, f"t{number}")
        rows.task(f"task{number}", state="started", thread_id=f"t{number}")
        if number in (9, 999):
            counts.append(_statements(open_pages(rows.path), path))

    assert counts[0] == counts[1] <= 40


def _statements(pages: Pages, path: str) -> int:
    seen: list[str] = []
    connect = sqlite3.connect

    def counted(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **named)
        connection.set_trace_callback(seen.append)
        return connection

    with patch("sqlite3.connect", counted):
        assert pages.get(path).status_code == 200
    return len(seen)


def test_every_file_of_the_pages_is_served_and_no_other() -> None:
    vendored = {name for name in static_names() if name.startswith("vendor/")}

    assert {"app.css", "app.js", "icon.svg"} <= static_names()
    assert len([name for name in vendored if name.endswith(".js")]) == len(
        [name for name in vendored if name.endswith("LICENSE.txt")]
    )


@pytest.mark.parametrize(
    ("given", "lines", "chars", "shown"),
    [
        ("a\nb\nc", 2, 100, ("a\nb", 1)),
        ("a\nb\n", 2, 100, ("a\nb", 0)),
        ("abcdef", 2, 3, ("abc…", 1)),
        ("ab\ncdef", 9, 4, ("ab", 1)),
        ("", 2, 3, ("", 0)),
    ],
)
def test_a_long_text_is_cut_at_a_line_where_there_is_one(
    given: str, lines: int, chars: int, shown: tuple[str, int]
) -> None:
    assert tuple(excerpt(given, lines, chars)) == shown


def test_the_command_says_how_to_install_what_is_missing(rows: Rows) -> None:
    missing = {name: None for name in list(sys.modules) if name.partition(".")[0] == "jinja2"}
    loaded = [name for name in sys.modules if name.startswith("graph_agent.web")]
    with patch.dict(sys.modules, {"jinja2": None, **missing}):
        for name in loaded:
            del sys.modules[name]
        with pytest.raises(UsageError, match=re.escape("pip install 'graph-agent[web]'")):
            web(db=str(rows.path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"host": "0" + ".0.0.0"}, "--allow-remote"),
        ({"host": "127.0.0.300", "allow_remote": True}, "Cannot listen at"),
        ({"host": "203.0.113.1", "allow_remote": True}, "Cannot listen at"),
        ({"read_only": True, "run": True}, "exclude each other"),
    ],
)
def test_options_that_cannot_be_met_are_refused(rows: Rows, options: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, typer.BadParameter), match=message):
        web(port=0, db=str(rows.path), **options)
