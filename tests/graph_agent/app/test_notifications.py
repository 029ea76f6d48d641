import asyncio
import base64
import hashlib
import hmac
import json
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app import notifications
from graph_agent.app.notifications import subscribe_notifications, webhook_headers
from graph_agent.config.settings import Hook, HookSettings, NotifySettings, Settings
from graph_agent.events import Event, EventBus, ToolCallDecided, TurnEnded, TurnStarted, WarningIssued
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.web_site import Answer, WebSite
from tests.scenarios.command import Command

_ASKED = (
    {
        "call_id": "c1",
        "thread_id": "",
        "tool_name": "bash",
        "kind": "approval",
        "risk": "high",
        "risk_reason": "deletes build",
    },
)
_WAITING = TurnEnded("awaiting_approval", questions=_ASKED)


async def _publish(
    notify: dict[str, Any], *events: Event | float, hooks: HookSettings | None = None, folder: Path = Path("/tmp")
) -> list[str]:
    """Publish the events, numbers being pauses in seconds, and close; the warnings that came of it."""
    bus, warnings = EventBus(), list[str]()
    settings = Settings(
        database=Path("none.db"),
        notify=NotifySettings.model_validate(notify),
        hooks=hooks or HookSettings(),
    )
    notifications = subscribe_notifications(settings, "t1", folder, bus)
    bus.subscribe(lambda _, event: warnings.append(event.text) if isinstance(event, WarningIssued) else None)
    for event in events:
        if isinstance(event, float):
            await asyncio.sleep(event)
        else:
            bus.publish(event)
    await notifications.close()
    return warnings


def _bodies(site: WebSite) -> list[dict[str, Any]]:
    return [json.loads(body) for body in site.posted]


@pytest.mark.parametrize(
    ("event", "kind", "summary", "commands"),
    [
        (
            _WAITING,
            "on_waiting",
            "bash waits for approval in shop (high risk: deletes build)",
            ["approvals list", "resume t1"],
        ),
        (
            TurnEnded("awaiting_approval", questions=_ASKED * 3),
            "on_waiting",
            "3 calls wait for you in shop",
            ["approvals list", "resume t1"],
        ),
        (
            TurnEnded("awaiting_approval", questions=({**_ASKED[0], "tool_name": "ask_user"},)),
            "on_waiting",
            "A question waits for you in shop",
            ["approvals list", "resume t1"],
        ),
        (
            TurnEnded("interrupted", questions=({**_ASKED[0], "kind": "recovery"},)),
            "on_waiting",
            "bash was interrupted in shop: decide what to do",
            ["recover t1", "resume t1"],
        ),
        (TurnEnded("done", "secret answer"), "on_finished", "Finished in shop", ["resume t1"]),
        (TurnEnded("limit"), "on_finished", "Reached a limit in shop", ["resume t1"]),
        (TurnEnded("model_error", error="secret"), "on_error", "Stopped by an error in shop", ["resume t1"]),
        (TurnEnded("failed", error="secret"), "on_error", "Stopped by an error in shop", ["resume t1"]),
        *((TurnEnded(status), "", "", []) for status in ("stopped", "resumable", "held")),
    ],
)
async def test_a_notification_names_what_waits_and_how_to_answer_and_holds_no_contents(
    event: TurnEnded, kind: str, summary: str, commands: list[str]
) -> None:
    with WebSite({}, {"/hook": Answer()}) as site:
        warnings = await _publish({"webhook": site.url("/hook"), "after": 0}, event, folder=Path("/tmp/shop"))

    sent = [(body["event"], body["summary"], body["commands"]) for body in _bodies(site)]
    assert [(one, text, [line.split(" ", 1)[1] for line in lines]) for one, text, lines in sent] == (
        [(kind, summary, commands)] if kind else []
    )
    assert (warnings, b"secret" in b"".join(site.posted)) == ([], False)


@pytest.mark.parametrize(
    ("events", "sent"),
    [
        ((TurnStarted("go"), _WAITING, 0.5), ["on_waiting"]),
        ((TurnStarted("go"), _WAITING, ToolCallDecided("c1", "approve", "me"), 0.5), []),
        ((TurnStarted("go"), _WAITING, TurnStarted(""), 0.5), []),
        ((TurnStarted("go"), _WAITING, 0.5, ToolCallDecided("c1", "approve", "me")), ["on_waiting"]),
        ((TurnStarted("go"), _WAITING), ["on_waiting"]),  # The chat is left with an open question.
        ((TurnStarted("go"), TurnEnded("done")), []),
        ((TurnStarted("go"), 0.4, TurnEnded("done")), ["on_finished"]),
        ((TurnStarted("go"), TurnEnded("model_error")), []),
        ((TurnStarted("go"), 0.4, TurnEnded("failed")), ["on_error"]),
    ],
)
async def test_in_a_chat_only_what_somebody_who_is_there_would_not_have_seen_is_announced(
    events: tuple[Event | float, ...], sent: list[str]
) -> None:
    with WebSite({}, {"/hook": Answer()}) as site:
        await _publish({"webhook": site.url("/hook"), "after": 0.3}, *events)

    assert [body["event"] for body in _bodies(site)] == sent


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")),
        ("plain words", b"plain words"),
        ("whsec_not base64!", b"whsec_not base64!"),
    ],
)
async def test_a_webhook_is_signed_as_the_standard_says(secret: str, key: bytes) -> None:
    with WebSite({}, {"/hook": Answer()}) as site:
        await _publish({"webhook": site.url("/hook"), "webhook_secret": secret, "after": 0}, _WAITING)

    [headers], [body] = [{name.lower(): value for name, value in one.items()} for one in site.headers], site.posted
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


def test_the_signature_of_the_standard_s_own_example_is_the_one_it_gives() -> None:
    # https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    headers = webhook_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )

    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_an_unsigned_webhook_has_no_signature_and_a_repeated_one_the_same_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notifications, "_RETRY_AFTER_S", (0.0, 0.0))
    with WebSite({}, {"/hook": Answer(status=503)}) as site:
        warnings = await _publish({"webhook": site.url("/hook?key=hidden"), "after": 0}, _WAITING)

    ids = {headers.get("webhook-id", headers.get("Webhook-Id")) for headers in site.headers}
    assert (len(site.posted), len(ids), "webhook-signature" in {name.lower() for name in site.headers[0]}) == (
        3,
        1,
        False,
    )
    assert warnings == ["A notification was not delivered. webhook: 127.0.0.1 answered 404"]


async def test_a_folder_whose_name_is_no_text_is_announced_in_every_way(tmp_path: Path) -> None:
    folder = tmp_path / "odd\udcff"
    folder.mkdir()
    hooks = HookSettings(on_waiting=(Hook(command="cat > got.json"),))
    with WebSite({}, {"/": Answer(), "/hook": Answer()}) as site:
        notify = {"webhook": site.url("/hook"), "ntfy": site.url("/topic"), "after": 0}
        warnings = await _publish(notify, _WAITING, hooks=hooks, folder=folder)

    assert (warnings, len(_bodies(site)), (folder / "got.json").exists()) == ([], 2, True)


async def test_an_answer_of_any_size_or_speed_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1_000_000)
        await asyncio.wait({asyncio.ensure_future(reader.read())})  # Until the other end has closed.
        writer.close()

    monkeypatch.setattr(notifications, "_CLOSE_S", 20)
    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        warnings = await _publish({"webhook": f"http://127.0.0.1:{port}/hook", "after": 0}, _WAITING)

    assert warnings == []


async def test_ntfy_gets_topic_text_and_priority() -> None:
    with WebSite({}, {"/": Answer()}) as site:
        await _publish({"ntfy": site.url("/my-topic"), "after": 0}, _WAITING, TurnEnded("done"))

    sent = sorted(_bodies(site), key=lambda body: body["priority"])
    assert [(body["topic"], body["priority"]) for body in sent] == [("my-topic", 3), ("my-topic", 4)]
    assert sent[1]["message"].splitlines()[0] == "bash waits for approval in tmp (high risk: deletes build)"


async def test_hooks_get_the_message_as_json_and_their_failures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "_RETRY_AFTER_S", (0.0, 0.0))
    hooks = HookSettings(
        on_waiting=(Hook(command=f"cat > {tmp_path}/got.json"), Hook(command="echo no >&2; exit 3")),
        on_finished=(Hook(command=f"touch {tmp_path}/finished"),),
    )
    warnings = await _publish({"after": 0}, _WAITING, hooks=hooks, folder=tmp_path)

    got = json.loads((tmp_path / "got.json").read_text())
    about = (got["hook_event_name"], got["workspace"], got["cwd"], got["calls"][0]["call_id"])
    assert about == ("on_waiting", str(tmp_path), str(tmp_path), "c1")
    assert not (tmp_path / "finished").exists()
    assert warnings == [
        "A notification was not delivered. hook on_waiting 'echo no >&2; exit 3': exit code 3: no",
    ]


async def test_the_desktop_is_notified_by_its_own_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {shlex.quote(str(tmp_path / "shown"))}\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    warnings = await _publish({"desktop": True, "after": 0}, _WAITING)

    shown = (tmp_path / "shown").read_text().splitlines()
    assert warnings == []
    assert shown[-2:] == ["graph-agent", "bash waits for approval in tmp (high risk: deletes build)"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (lambda site: f'[notify]\nwebhook = "{site.url("/hook")}"\n', ()),
        (lambda _: "", ("--notify", "SITE")),
    ],
)
def test_a_run_that_ends_with_a_question_notifies_at_once(
    tmp_path: Path, settings: Callable[[WebSite], str], words: tuple[str, ...]
) -> None:
    with WebSite({}, {"/hook": Answer()}) as site, FakeOpenAI([TC("c1", "bash", {"command": "touch x"})]) as server:
        command = Command(tmp_path, server.base_url, settings=settings(site))
        done = command("run", "go", *(site.url("/hook") if word == "SITE" else word for word in words))

    [body] = _bodies(site)
    assert (done.returncode, body["event"], body["status"]) == (3, "on_waiting", "awaiting_approval")
    assert [(call["call_id"], call["tool_name"]) for call in body["calls"]] == [("c1", "bash")]
    assert "touch x" not in json.dumps(body)


def test_a_dead_webhook_neither_changes_the_result_nor_shows_its_address(tmp_path: Path) -> None:
    address = "http://127.0.0.1:9/hook/s3cret"
    with FakeOpenAI([TXT("all done")]) as server:
        done = Command(tmp_path, server.base_url, settings=f'[notify]\nwebhook = "{address}"\n')("run", "go")
        shown = Command(tmp_path, server.base_url)("config", "show")

    assert (done.returncode, done.stdout) == (0, "all done\n")
    assert "A notification was not delivered. webhook: 127.0.0.1 cannot be reached" in done.stderr
    assert "s3cret" not in done.stderr + shown.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('notify = "osc9"\n', ""),
        ('[notify]\nterminal = "osc9"\n', ""),
        ('notify = "loud"\n', "notify.terminal"),
        ('[notify]\nwebhook = "ftp://example.org/s3cret"\n', "should be an address that starts with http"),
        ("[notify]\nafter = -1\n", "notify.after"),
        ("[notify]\ncommand = 'x'\n", "notify.command"),
    ],
)
def test_the_table_is_checked_and_its_old_form_is_still_read(tmp_path: Path, text: str, message: str) -> None:
    done = Command(tmp_path, settings=text)("config", "show", "--json")

    assert (done.returncode, message in done.stderr, "s3cret" in done.stderr) == (2 if message else 0, True, False)
    if not message:
        assert "osc9" in done.stdout
