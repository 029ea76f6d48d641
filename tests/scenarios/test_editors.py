"""`graph-agent acp` as an editor drives it: the protocol's own client, real processes, real kills."""

import asyncio
import base64
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from acp import RequestError, schema, text_block

from graph_agent.app.threads import say
from graph_agent.ports.background import process_started
from tests.architecture.checkout import ROOT
from tests.fakes.acp_client import DISMISS, Editor, error_of, stderr_of
from tests.fakes.forked_command import start_forked
from tests.fakes.openai_server import DELAY, ERR, TC, TXT
from tests.fakes.postgres_server import PostgresServer
from tests.scenarios.command import NO_SANDBOX, scripted

TOUCH = TC("c1", "bash", {"command": "touch x"})
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_a_turn_streams_asks_runs_and_ends(tmp_path: Path) -> None:
    replies = [
        TC("c1", "write_file", {"file_path": "a.txt", "content": "hello\n"}),
        TC("c2", "todo_write", {"items": [{"content": "look", "status": "in_progress"}]}),
        TXT("all done"),
    ]
    with scripted(tmp_path, replies) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            editor.answers["c1"] = "approve"

            stopped = await session.prompt("write it")

            [asked] = editor.asked
            path = str(command.workspace / "a.txt")
            diff = {"type": "diff", "path": path, "newText": "hello\n"}
            assert (stopped, session.said()) == ("end_turn", "all done")
            assert asked["toolCall"]["content"][0] == diff
            assert session.call("c1")["status"] == "completed"
            assert session.call("c1")["kind"] == "edit"
            assert session.call("c1")["locations"] == [{"path": path, "line": 1}]
            [plan] = session.updates("plan")
            assert plan["entries"] == [{"content": "look", "priority": "medium", "status": "in_progress"}]
            assert session.updates("usage_update")[-1]["size"] > 0
            assert session.updates("session_info_update")[-1]["title"] == "write it"
            names = {one["name"] for one in session.updates("available_commands_update")[0]["availableCommands"]}
            assert names >= {"compact", "retry", "diff", "mode", "model"}
        assert editor.exit_code == 0
        assert (command.workspace / "a.txt").read_text() == "hello\n"
        assert stderr_of(command) == ""


async def test_a_turn_asks_and_runs_with_a_database_on_a_server(
    postgres: PostgresServer, postgres_template: str, tmp_path: Path
) -> None:
    with scripted(tmp_path, [TOUCH, TXT("all done")]) as command:
        command.extra_env = {"GRAPH_AGENT_DB": postgres.create_database(postgres_template)}
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            editor.answers["c1"] = "approve"

            assert (await session.prompt("go"), session.said()) == ("end_turn", "all done")
        assert (editor.exit_code, stderr_of(command), (command.workspace / "x").exists()) == (0, "", True)


@pytest.mark.parametrize(("resumes", "end"), [(False, "kill"), (True, "kill"), (False, "close")])
async def test_after_a_kill_or_a_close_the_same_question_is_asked_again(
    tmp_path: Path, resumes: bool, end: str
) -> None:
    write = TC("c1", "write_file", {"file_path": "a.txt", "content": "hello\n"})
    with scripted(tmp_path, [write, TXT("done")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            turn = session.begin("write it")
            before = await editor.question()
            editor.kill() if end == "kill" else editor.close()
            with pytest.raises((RequestError, ConnectionError)):
                await turn
        assert editor.exit_code == (0 if end == "close" else -9)
        async with Editor.start(command) as editor:
            session = await editor.load(session.id, resumes=resumes)
            after = await editor.question()

            # The call is known before it is asked about, and the session is open before anything is asked.
            methods = [one.get("method") or "answer" for one in editor.messages]
            assert methods.index("session/request_permission") > methods.index("answer", 1)
            assert [one["toolCallId"] for one in session.updates("tool_call")] == ["c1"]
            assert after == before
            said = [one["content"]["text"] for one in session.updates("user_message_chunk")]
            assert said == ([] if resumes else ["write it"])
            editor.answers["c1"] = "approve"
            await editor.until(lambda: session.said() == "done", "the end of the turn")
        assert (command.workspace / "a.txt").read_text() == "hello\n"


ONCE = "echo ran >> runs; sleep 60"


@pytest.mark.parametrize(
    ("option", "status", "runs"), [("cancel", "failed", 1), ("done", "completed", 1), ("retry", "in_progress", 2)]
)
async def test_after_a_kill_in_the_middle_of_a_call_the_editor_decides(
    tmp_path: Path, option: str, status: str, runs: int
) -> None:
    with scripted(tmp_path, [TC("c1", "bash", {"command": ONCE}), TXT("done")]) as command:
        ran = command.workspace / "runs"
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            editor.answers["c1"] = "approve"
            turn = session.begin("go")
            await editor.until(ran.exists, "the start of the command")
            editor.kill()
            with pytest.raises((RequestError, ConnectionError)):
                await turn
        async with Editor.start(command) as editor:
            session = await editor.load(session.id, resumes=option == "done")
            asked = await editor.question()

            [announced] = session.updates("tool_call")
            assert (announced["toolCallId"], announced["rawInput"]) == ("c1", {"command": ONCE})
            kinds = [(one["optionId"], one["kind"]) for one in asked["options"]]
            assert kinds == [("cancel", "reject_once"), ("done", "allow_once"), ("retry", "allow_once")]
            assert asked["toolCall"]["toolCallId"] == "c1"
            assert len(ran.read_text().splitlines()) == 1
            editor.answers["c1"] = option
            await editor.until(lambda: session.call("c1").get("status") == status, status)
            await editor.until(lambda: len(ran.read_text().splitlines()) == runs, f"{runs} runs")


async def test_what_is_answered_elsewhere_is_taken_back_from_the_editor(tmp_path: Path) -> None:
    with scripted(tmp_path, [TOUCH, TXT("done")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            turn = session.begin("go")
            await editor.question()

            await asyncio.to_thread(command, "approvals", "approve", "c1")

            assert await turn == "end_turn"
            notes = [str(one.get("content")) for one in session.updates("tool_call_update")]
            assert any("approved by" in note for note in notes)
            assert editor.withdrawn == 1
        assert (command.workspace / "x").exists()


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_dismissed_question_stays_open(tmp_path: Path, elsewhere: bool) -> None:
    with scripted(tmp_path, [TOUCH, TXT("done"), TXT("and more")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            editor.answers["c1"] = DISMISS

            assert await session.prompt("go") == "end_turn"
            assert "Left open" in session.said()
            del editor.answers["c1"]
            if elsewhere:
                await asyncio.to_thread(command, "approvals", "approve", "c1")
                await editor.until(lambda: session.said().endswith("done"), "the end of the turn")
            else:
                turn = session.begin("and more?")
                assert (await editor.question(1))["toolCall"]["toolCallId"] == "c1"
                editor.answers["c1"] = "approve"
                assert await turn == "end_turn"
                assert command.said() == ["go", "and more?"]
        assert (command.workspace / "x").exists()


async def test_an_editor_that_picks_the_first_option_runs_nothing(tmp_path: Path) -> None:
    ask = TC("c3", "ask_user", {"question": "Which?", "options": ["this", "that"]})
    with scripted(tmp_path, [TOUCH, ask, TXT("done")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            editor.answers["*"] = "(first)"

            assert await session.prompt("go") == "end_turn"

            kinds = [one["options"][0]["kind"] for one in editor.asked]
            assert kinds == ["reject_once", "reject_once"]
            assert session.call("c1")["status"] == "failed"
            assert "rejected by" in str(session.call("c1")["content"])
        assert not (command.workspace / "x").exists()


async def test_a_question_of_the_model_is_answered_by_an_option_or_in_words(tmp_path: Path) -> None:
    asks = [
        TC("c1", "ask_user", {"question": "Which?", "options": ["this", "that"]}),
        TC("c2", "ask_user", {"question": "Why?"}),
        TXT("done"),
    ]
    with scripted(tmp_path, asks) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            editor.answers["c1"] = "answer-2"
            turn = session.begin("go")
            await editor.question(1)

            assert await session.prompt("because") == "end_turn"
            assert await turn == "end_turn"
        assert ["that" in command.results()[0], "because" in command.results()[1]] == [True, True]


@pytest.mark.parametrize("moment", ["asking", "running", "streaming", "idle"])
async def test_the_editor_stops_a_turn(tmp_path: Path, moment: str) -> None:
    first = {"running": TC("c1", "bash", {"command": ONCE}), "streaming": DELAY(20, TXT("late"))}.get(moment, TOUCH)
    with scripted(tmp_path, [first, TXT("next")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            if moment != "idle":
                editor.answers |= {"c1": "approve"} if moment == "running" else {}
                turn = session.begin("go")
                await editor.until((command.workspace / "runs").exists) if moment == "running" else None
                await editor.question() if moment == "asking" else None
                await editor.until(lambda: command.server.requests, "the request")

            await editor.agent.cancel(session_id=session.id)

            if moment != "idle":
                assert await turn == "cancelled"
                assert await session.prompt("next") == "end_turn"
                assert session.said().endswith("next")
            else:
                editor.answers["c1"] = "approve"
                assert await session.prompt("go") == "end_turn"
        assert (command.workspace / "x").exists() is (moment == "idle")


async def test_ctrl_c_stops_the_turns_that_run_and_then_ends_the_agent(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(20, TXT("late")), TXT("next")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            turn = session.begin("go")
            await editor.until(lambda: command.server.requests, "the request")

            editor.program.send_signal(signal.SIGINT)

            assert await turn == "cancelled"
            assert await session.prompt("next") == "end_turn"
            await asyncio.sleep(0.5)  # Until then there may be something to stop.
            editor.program.send_signal(signal.SIGINT)
            await editor.until(lambda: process_started(editor.program.pid) is None, "the end")
        assert editor.exit_code == 128 + signal.SIGINT


async def test_prompts_while_a_turn_runs_wait_for_their_turn(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(1, TXT("one. ")), TXT("two. "), TXT("three. ")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            first = session.begin("first")
            await editor.until(lambda: command.server.requests, "the request")

            rest = [session.begin("second"), session.begin("third")]

            assert await asyncio.gather(first, *rest) == ["end_turn"] * 3
            assert session.said() == "one. two. three. "
            assert command.said() == ["first", "second", "third"]


async def test_a_prompt_that_waited_when_the_agent_was_killed_is_sent_later(tmp_path: Path) -> None:
    with scripted(tmp_path, [TOUCH, TXT("done. "), TXT("and that")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            turns = [session.begin("go")]
            await editor.question()
            turns.append(session.begin("and that?"))
            await editor.until(
                lambda: command.json("threads", "list")["threads"][0]["queued_messages"] == 1, "the queue"
            )
            editor.kill()
            for turn in turns:
                with pytest.raises((RequestError, ConnectionError)):
                    await turn
        async with Editor.start(command) as editor:
            session = await editor.load(session.id)
            editor.answers["c1"] = "approve"
            await editor.until(lambda: session.said() == "done. and that", "both turns")


_HOOK = """
[[hooks.user_prompt]]
command = "test -e started && exit 0; touch started; sleep 60"
"""


@pytest.mark.parametrize("moment", ["stored", "asked"])
async def test_a_prompt_is_shown_again_whenever_the_agent_was_killed_after_storing_it(
    tmp_path: Path, moment: str
) -> None:
    replies = [TXT("done")] if moment == "stored" else [DELAY(60, TXT("late")), TXT("done")]
    with scripted(tmp_path, replies, settings=_HOOK if moment == "stored" else "") as command:
        started = command.workspace / "started"
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            turn = session.begin("go")
            await editor.until(started.exists if moment == "stored" else lambda: command.server.requests, moment)
            editor.kill()
            with pytest.raises((RequestError, ConnectionError)):
                await turn
        [listed] = command.json("threads", "list")["threads"]
        assert (listed["checkpoint_id"] is None) is (moment == "stored")
        async with Editor.start(command) as editor:
            session = await editor.load(session.id)
            if moment == "asked":
                await editor.until(lambda: "was interrupted" in session.said(), "the notice")
                assert await session.prompt("/retry") == "end_turn"
            await editor.until(lambda: session.said().endswith("done"), "the reply")
            shown = [one["content"]["text"] for one in session.updates("user_message_chunk")]
            assert (shown, command.said()) == (["go"], ["go"])


async def test_a_message_that_is_queued_elsewhere_is_shown_in_the_editor(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(1, TXT("one. ")), TXT("two")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            turn = session.begin("go")
            await editor.until(lambda: command.server.requests, "the request")
            await say(command.folder / "home" / "data" / "graph-agent.db", session.id, "from elsewhere")

            assert await turn == "end_turn"
            await editor.until(lambda: session.said() == "one. two", "both turns")
            shown = [one["content"]["text"] for one in session.updates("user_message_chunk")]
            assert shown == ["from elsewhere"]


async def test_modes_and_models_are_chosen(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("one"), TXT("two")]) as command:
        command.server.models = ["fake", "other"]
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            await editor.until(lambda: session.updates("config_option_update"), "the list of models")
            models = session.updates("config_option_update")[0]["configOptions"][1]
            assert [one["value"] for one in models["options"]] == ["fake", "other"]

            await editor.agent.set_session_mode(session_id=session.id, mode_id="plan")
            response = await editor.agent.set_config_option(session_id=session.id, config_id="model", value="other")
            await session.prompt("go")
            await session.prompt("/mode acceptEdits")

            assert [one.current_value for one in response.config_options] == ["plan", "other"]
            assert [one["currentModeId"] for one in session.updates("current_mode_update")] == [
                "plan",
                "acceptEdits",
            ]
            assert command.server.bodies[-1]["model"] == "other"
            again = await editor.load(session.id)
            assert again.opened["modes"]["currentModeId"] == "acceptEdits"
            assert again.opened["configOptions"][1]["currentValue"] == "other"
            with pytest.raises(RequestError, match="bypassPermissions can only be chosen at the start"):
                await editor.agent.set_session_mode(session_id=session.id, mode_id="bypassPermissions")


async def test_sessions_are_threads(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("one"), TXT("two"), TXT("three")]) as command:
        await asyncio.to_thread(command, "run", "hello", "--thread", "shop")
        async with Editor.start(command) as editor:
            listed = await editor.agent.list_sessions(cwd=str(command.workspace))
            nowhere = await editor.agent.list_sessions(cwd="/nowhere")
            session = await editor.load("shop")
            assert [one.session_id for one in listed.sessions] == ["shop"]
            assert nowhere.sessions == []
            assert session.said() == "one"
            assert await session.prompt("more") == "end_turn"
            head = command.json("history", "shop")["checkpoints"][-1]["checkpoint_id"]
            await editor.agent.close_session(session_id="shop")
            older = await editor.load(head)
            assert older.opened["modes"]["currentModeId"] == "default"
            await editor.agent.close_session(session_id=head)
            for unknown in ("nothing", "0" * 32):
                with pytest.raises(RequestError) as refused:
                    await editor.load(unknown)
                assert error_of(refused.value)[0] == -32002
            with pytest.raises(RequestError, match="is not open") as refused:
                await editor.agent.prompt(session_id="shop", prompt=[text_block("hi")])
            assert error_of(refused.value)[0] == -32002


async def test_a_thread_that_another_process_holds_is_named(tmp_path: Path) -> None:
    with scripted(tmp_path, [TOUCH, TXT("done")]) as command:
        async with Editor.start(command) as one, Editor.start(command) as two:
            session = await one.new_session()
            session.begin("go")
            await one.question()
            with pytest.raises(RequestError, match=f"pid {one.program.pid}"):
                await two.load(session.id)


async def test_files_buffers_and_images_come_along(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("seen")]) as command:
        (command.workspace / "a b.txt").write_text("on disk")
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            buffer = schema.TextResourceContents(uri=f"file://{command.workspace}/b.txt", text="not saved")

            stopped = await session.prompt(
                "look at ",
                schema.ResourceContentBlock(
                    type="resource_link", uri=f"file://{command.workspace}/a%20b.txt", name="a b.txt"
                ),
                schema.EmbeddedResourceContentBlock(type="resource", resource=buffer),
                schema.ImageContentBlock(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png"),
                schema.ResourceContentBlock(type="resource_link", uri="https://example.com/x", name="docs"),
            )

        [message] = [one for one in command.server.bodies[0]["messages"] if one["role"] == "user"]
        sent = json.dumps(message)
        assert stopped == "end_turn"
        assert all(
            part in sent for part in ("on disk", "not saved", "data:image/png", "[docs](https://example.com/x)")
        )


READ = TC("r", "read_file", {"file_path": "a.txt"})
EDIT = TC("e", "edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "three"})
WRITE = TC("w", "write_file", {"file_path": "a.txt", "content": "four\n"})


async def test_a_read_shows_what_is_not_saved_and_no_change_of_the_file_overwrites_it(tmp_path: Path) -> None:
    replies = [READ, EDIT, WRITE, TXT("unsaved"), EDIT, TXT("done")]
    with scripted(tmp_path, replies) as command:
        file = command.workspace / "a.txt"
        file.write_text("one\r\n", newline="")
        async with Editor.start(command, gives_text=True) as editor:
            session = await editor.new_session()
            editor.buffers[file] = "one\ntwo\n"
            editor.answers["*"] = "approve"

            assert await session.prompt("go") == "end_turn"
            shown, *refused = command.results()
            assert "2\ttwo\n[the user's editor has these lines, not saved yet" in shown
            assert [
                one for one in refused if "has unsaved changes in the user's editor. Nothing was" not in one
            ] == []
            assert (len(refused), editor.asked, file.read_bytes()) == (2, [], b"one\r\n")

            file.write_text("one\r\ntwo\r\n", newline="")  # The user saves it: it is what the model has read.
            assert await session.prompt("go on") == "end_turn"
            assert file.read_bytes() == b"one\r\nthree\r\n"
        assert len(editor.asked) == 1


async def test_an_editor_that_has_not_reloaded_a_file_yet_has_nothing_unsaved(tmp_path: Path) -> None:
    change = TC("c", "bash", {"command": "echo two > a.txt"})
    replies = [READ, change, TC("r2", "read_file", {"file_path": "a.txt"}), EDIT, TXT("done")]
    with scripted(tmp_path, replies) as command:
        file = command.workspace / "a.txt"
        file.write_text("one\n")
        async with Editor.start(command, gives_text=True) as editor:
            session = await editor.new_session()
            editor.buffers[file] = "one\n"
            editor.answers["*"] = "approve"

            assert await session.prompt("go") == "end_turn"

        assert "two" in command.results()[2]
        assert file.read_text() == "three\n"


async def test_a_file_that_the_editor_cannot_open_is_read_and_changed_on_the_disk(tmp_path: Path) -> None:
    replies = [READ, TC("w", "write_file", {"file_path": "b.txt", "content": "b"}), TXT("done")]
    with scripted(tmp_path, replies) as command:
        (command.workspace / "a.txt").write_bytes(b"one\xe9\n")  # The editor fails to decode it.
        async with Editor.start(command, gives_text=True) as editor:
            session = await editor.new_session()
            editor.answers["*"] = "approve"

            assert await session.prompt("go") == "end_turn"

        assert "one" in command.results()[0]
        assert (command.workspace / "b.txt").read_text() == "b"


async def test_the_questions_of_a_sub_agent_reach_the_editor(tmp_path: Path) -> None:
    task = TC("c1", "new_task", {"description": "touch it", "prompt": "touch x"})
    with scripted(
        tmp_path, [task, TC("s1", "bash", {"command": "touch x"}), TXT("touched"), TXT("done")]
    ) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            editor.answers["c1"] = "approve"
            editor.answers["*"] = "approve"

            assert await session.prompt("go") == "end_turn"

            asked = editor.asked[-1]["toolCall"]
            [_, listed] = command.json("threads", "list")["threads"]
            assert asked["toolCallId"].startswith(f"{listed['thread_id']}:")
            assert "touch it" in str(asked["content"])
            assert session.call(asked["toolCallId"])["status"] == "completed"
        assert (command.workspace / "x").exists()


async def test_an_always_allowed_call_is_not_asked_about_again(tmp_path: Path) -> None:
    with scripted(tmp_path, [TOUCH, TC("c2", "bash", {"command": "touch x"}), TXT("done")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            editor.answers["c1"] = "always-exact-thread"
            assert await session.prompt("go") == "end_turn"
            assert [one["toolCall"]["toolCallId"] for one in editor.asked] == ["c1"]


async def test_an_error_of_the_model_is_an_error_of_the_prompt_and_retry_asks_again(tmp_path: Path) -> None:
    with scripted(tmp_path, [ERR(401, "no such key"), TXT("here again")]) as command:
        async with Editor.start(command) as editor:
            session = await editor.new_session()
            with pytest.raises(RequestError, match="no such key"):
                await session.prompt("go")
            assert await session.prompt("/retry") == "end_turn"
            assert session.said() == "here again"
            assert await session.prompt("/diff") == "end_turn"
            assert "has changed no files" in session.said()


GARBAGE = (
    b"not json\n",
    b"\xff\xfe\x00\n",
    b"[]\n",
    b'{"id": 1}\n',
    b'{"jsonrpc": "2.0", "id": 2, "method": "no/such"}\n',
    b'{"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}\n',
    b'{"jsonrpc": "2.0", "id": 4, "method": "session/new", "params": {"cwd": "relative", "mcpServers": []}}\n',
    b'{"jsonrpc": "2.0", "id": 5, "method": "session/new", "params": {"cwd": "/no/such/folder"}}\n',
    b'{"jsonrpc": "2.0", "id": 12, "method": "session/new", "params": {"cwd": "/\\u0000"}}\n',
    b'{"jsonrpc": "2.0", "id": 13, "method": "session/new", "params": {"cwd": "/' + b"a" * 300 + b'"}}\n',
    b'{"jsonrpc": "2.0", "id": 14, "method": "session/list", "params": {"cursor": "' + b"9" * 5000 + b'"}}\n',
    b'{"jsonrpc": "2.0", "id": 6, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": 3}}\n',
    b'{"jsonrpc": "2.0", "id": 7, "method": "session/load", "params": {"sessionId": 7, "cwd": "/tmp"}}\n',
    b'{"jsonrpc": "2.0", "id": 8, "method": "session/load", "params": {"sessionId": "nope", "cwd": "/tmp"}}\n',
    b'{"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {"cursor": "nope"}}\n',
    b'{"jsonrpc": "2.0", "id": 10, "method": "initialize", "params": {"protocolVersion": "one"}}\n',
    b'{"jsonrpc": "2.0", "id": 11, "method": "session/set_mode", "params": {"sessionId": "x", "modeId": "plan"}}\n',
)


def test_garbage_gets_errors_and_no_end(tmp_path: Path) -> None:
    with scripted(tmp_path, []) as command:
        sent = b"".join(GARBAGE) + b"x" * (65 * 1024 * 1024) + b"\n"
        program = start_forked(("acp",), command.workspace, command.env, tmp_path / "stderr")
        with os.fdopen(program.stdin, "wb") as stdin, os.fdopen(program.stdout, "rb") as stdout:
            stdin.write(sent + b'{"jsonrpc": "2.0", "id": 15, "method": "session/list"}\n')
            stdin.flush()
            answers = [json.loads(stdout.readline()) for _ in range(len(GARBAGE) + 2)]
        ended = program.wait()

    assert sorted(one["id"] for one in answers if one["id"] is not None) == list(range(1, 16))
    assert [one["id"] for one in answers if "result" in one] == [15]
    assert all(-32768 <= one["error"]["code"] <= -32000 for one in answers if "error" in one)
    assert [one for one in answers if "Unexpected" in str(one.get("error"))] == []
    assert (ended, stderr_of(command)) == (0, "")


async def test_a_session_does_not_wait_for_the_mcp_servers_of_another(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("done")]) as command:
        async with Editor.start(command) as editor:
            silent = schema.McpServerStdio(name="silent", command="sleep", args=["1000"], env=[])
            slow = asyncio.ensure_future(editor.new_session(mcp_servers=[silent]))
            await asyncio.sleep(0.2)
            session = await editor.new_session()

            assert (await session.prompt("go"), slow.done()) == ("end_turn", False)
            slow.cancel()


async def test_the_editor_hands_over_mcp_servers(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("done")], settings=NO_SANDBOX) as command:
        server = schema.McpServerStdio(
            name="notes", command=sys.executable, args=["-m", "tests.fakes.mcp_notes"], env=[]
        )
        command.extra_env = {"PYTHONPATH": str(ROOT)}
        async with Editor.start(command) as editor:
            sse = schema.SseMcpServer(type="sse", name="old", url="http://127.0.0.1:1/sse", headers=[])
            with pytest.raises(RequestError, match="only stdio and http"):
                await editor.new_session(mcp_servers=[sse])
            session = await editor.new_session(mcp_servers=[server])
            await session.prompt("go")

    offered = [one["function"]["name"] for one in command.server.bodies[0]["tools"]]
    assert [name for name in offered if name.startswith("mcp__notes__")]
