"""What must hold after any kills, read from outside: effects, the person's log, the product's own account."""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.app.reader import read_database
from graph_agent.calls import NEW_MESSAGE
from graph_agent.storage.decoder import PlainDecoder
from tests.cases.processes import running_with
from tests.crash.scenes import ALWAYS, EDITED, ENDLESS, marker_in, words_for
from tests.crash.world import World

__all__ = ["avoidable", "violations"]


_STANDS = ("approve", "edit", "answer", "reject")
"""Answers to an approval or to a question of the model's."""


def violations(world: World) -> list[str]:
    """Every broken promise of this trial, as text that begins with the invariant's name."""
    account = _Account(world)
    return [
        *account.unfinished(),
        *account.runs_without_leave(),
        *account.effects_unaccounted(),
        *account.untruths(),
        *account.forgotten_answers(),
        *account.approvals_of_ended_runs(),
        *account.claims_of_others(),
        *account.words(),
        *account.needless_questions(),
        *account.grants(),
        *account.history(),
        *account.lost_messages(),
        *account.paid_twice(),
        *account.miscounted(),
        *account.files(),
        *account.orphans(),
        *account.lost_output(),
        *_small_effects(world, account.by_marker),
    ]


def avoidable(world: World) -> list[str]:
    """Interrupted calls shown to the person although the program could have resolved them."""
    return [
        f"avoidable: {note['call']} {note['reason']}"
        for note in world.notes("asked")
        if note["question"] == "recovery" and note["reason"] == "never_started" and note["risk"] == "low"
    ]


class _Account:
    def __init__(self, world: World) -> None:
        self.world = world
        connection = sqlite3.connect(f"file:{world.database}?mode=ro", uri=True)
        rows = connection.execute("SELECT call_id, record, abandoned FROM call_log").fetchall()
        self.call_log: dict[str, dict[str, Any]] = {call_id: json.loads(record) for call_id, record, _ in rows}
        self.abandoned = {call_id for call_id, _, left in rows if left}
        self.journal = connection.execute("SELECT call_id, attempt, owner FROM journal").fetchall()
        self.standing = connection.execute("SELECT call_id, status FROM journal WHERE reverted = 0").fetchall()
        self.results = {
            body["tool_call_id"]: body["content"]
            for (text,) in connection.execute("SELECT body FROM transcript WHERE role = 'tool' ORDER BY seq")
            if (body := json.loads(text))
        }
        self.said = [
            str(json.loads(body)["content"])
            for (body,) in connection.execute("SELECT body FROM transcript WHERE role = 'user' ORDER BY seq")
        ]
        values = connection.execute("SELECT type, value FROM writes WHERE channel = 'calls' ORDER BY rowid")
        self.writes = [
            (call_id, write)
            for kind, value in values
            for call_id, write in PlainDecoder().write("calls", kind, value).items()
            if call_id != NEW_MESSAGE
        ]
        within = "SELECT thread_id, parent_thread, parent_call FROM threads WHERE parent_call IS NOT NULL"
        self.children = connection.execute(within).fetchall()
        self.granted = connection.execute("SELECT call_id, rules FROM grants").fetchall()
        connection.close()
        self.runs = Counter(marker.removesuffix(EDITED) for marker in world.runs())
        self.by_marker = {
            marker: call for call in self.call_log.values() if (marker := marker_in(call["arguments"]))
        }

    def unfinished(self) -> list[str]:
        ends = self.world.notes("finished", "failed", "stuck")
        failed = [f"failed: {note.get('error', note)}" for note in ends if note["kind"] != "finished"]
        open_calls = [
            f"unfinished: {call_id} is {call['status']}"
            for call_id, call in self.call_log.items()
            if call_id not in self.abandoned
        ]
        return failed + [
            line for line in open_calls if not line.endswith(("is success", "is error", "is cancelled"))
        ]

    def runs_without_leave(self) -> list[str]:
        """I1, I2: a command runs once, and once more for each retry that a person gave, or after a rewind."""
        rewinds = len(self.world.notes("rewinds"))
        retries = Counter(note["marker"] for note in self.world.notes("answering") if note["answer"] == "retry")
        unasked = Counter(
            marker_in(call["arguments"])
            for call in self.call_log.values()
            if call.get("rule", "").startswith("grant")
        )
        leave = Counter(
            marker
            for marker, _ in {
                (note["marker"], note["call"])
                for note in self.world.notes("answering")
                if note["answer"] in ("approve", "edit")
            }
        )
        too_often = [
            f"I1/I2: {marker} ran {count} times with {retries[marker]} retries"
            for marker, count in self.runs.items()
            if count > max(1, leave[marker]) + retries[marker] + rewinds + unasked[marker]
        ]
        return too_often + [f"I3: {marker} ran without approval" for marker in self.runs if marker not in leave]

    def effects_unaccounted(self) -> list[str]:
        """I2: what ran is in the call log as started."""
        return [
            f"I2: {marker} ran and its record says it did not begin"
            for marker in self.runs
            if not self.by_marker.get(marker, {}).get("started")
        ]

    def untruths(self) -> list[str]:
        """I2: the model is not told that something did not happen when it did, nor the other way round."""
        lies = [
            f"I2: {note['marker']} had run and was shown as never started"
            for note in self.world.notes("asked")
            if note["reason"] == "never_started" and note["ran"]
        ]
        for marker, call in self.by_marker.items():
            result = self.results.get(call["call_id"], "")
            if self.runs[marker] and ("never started" in result or "Not run:" in result):
                lies.append(f"I2: {marker} ran and the model was told {result!r}")
            claims_success = call["status"] == "success" and call.get("decision") != "done"
            has_effect = call["tool_name"] in ("bash", "mcp__notes__note")
            if has_effect and claims_success and not self.runs[marker]:
                lies.append(f"I1: {marker} is a success and never ran")
        return lies

    def forgotten_answers(self) -> list[str]:
        """I3, I4: an answer that stands is never asked for again, until an earlier checkpoint is resumed."""
        answered: set[tuple[str, str]] = set()
        again = []
        for note in self.world.notes("asked", "answered", "goes back"):
            if note["kind"] == "goes back":
                answered = set()
            elif note["kind"] == "answered" and note["answer"] in _STANDS:
                answered.add((note["call"], "approval"))
            elif note["kind"] == "asked" and (note["call"], note["question"]) in answered:
                again.append(f"I4: {note['call']} was asked about again after its answer stood")
        return again

    def words(self) -> list[str]:
        """I3: what the person answered in words reaches the model, whatever died on the way."""
        return [
            f"I3: {marker} was answered, and the model was told {result!r}"
            for marker, call in self.by_marker.items()
            if call["tool_name"] == "ask_user"
            and call["call_id"] not in self.abandoned
            and (result := self.results.get(call["call_id"])) != words_for(marker)
        ]

    def needless_questions(self) -> list[str]:
        """I3: a call that hands out a task goes on by itself; only what its sub-agent does is asked about."""
        asked = [note for note in self.world.notes("asked") if note["tool"] == "new_task"]
        return [f"I3: the sub-agent of {note['call']} was asked about" for note in asked]

    def approvals_of_ended_runs(self) -> list[str]:
        """I4: an attempt that a person let through is marked by the run that applied the answer, or by none."""
        granted: dict[tuple[str, int], str] = {}
        wrong = []
        for call_id, write in self.writes:
            token, attempt = write.get("owner_token"), write.get("attempt", 1)
            if write.get("status") == "pending" and token:
                granted[call_id, attempt] = token
            if write.get("status") == "executing" and token and granted.get((call_id, attempt), token) != token:
                wrong.append(f"I4: attempt {attempt} of {call_id} was marked on the approval of another run")
        return wrong

    def claims_of_others(self) -> list[str]:
        """I5: the run that claimed an attempt is the one that marked it, unless a checkpoint was resumed since."""
        before = {
            (call_id, attempt) for note in self.world.notes("goes back") for call_id, attempt in note["begun"]
        }
        return [
            f"I5: attempt {attempt} of {call_id} was begun by another run than the one that marked it"
            for call_id, attempt, owner in self.journal
            if call_id in self.call_log
            and self.call_log[call_id].get("attempt", 1) == attempt
            and self.call_log[call_id].get("owner_token") != owner
            and (call_id, attempt) not in before
        ]

    def grants(self) -> list[str]:
        """I7: what is allowed always is stored once, with its answer, and then nothing like it is asked about."""
        always = [note for note in self.world.notes("asked", "answering", "answered") if note["marker"] == ALWAYS]
        given = {note["call"] for note in always if note.get("always")}
        stands, again = False, set()
        for note in always:
            stands = stands or bool(note["kind"] == "answered" and note["always"])
            if stands and note["kind"] == "asked" and note["question"] == "approval":
                again.add(note["call"])
        stored = [call_id for call_id, _ in self.granted]
        wrong = [f"I7: {call_id} was asked about though its like was allowed always" for call_id in again]
        return wrong + (
            [f"I7: always was answered about {given}, it is stored of {stored}"]
            if sorted(given) != sorted(stored)
            else []
        )

    def history(self) -> list[str]:
        return [f"I6: {note['error']}" for note in self.world.notes("invalid history")]

    def files(self) -> list[str]:
        """I1, I7: a file is there, and whole, exactly where the change that made it stands."""
        wrong = []
        for marker, call in self.by_marker.items():
            if call["tool_name"] != "write_file" or call.get("decision") == "done":
                continue
            file = self.world.workspace / f"{marker}.txt"
            stands = [status for call_id, status in self.standing if call_id == call["call_id"]]
            if "success" in stands and not file.exists():
                wrong.append(f"I1: {file.name} is gone and the change that made it stands")
            if not stands and file.exists():
                wrong.append(f"I7: {file.name} is there and the change that made it was undone, or never was")
            if file.exists() and file.read_text() != f"{marker}\n":
                wrong.append(f"I1: {file.name} is neither old nor new")
        return wrong

    def orphans(self) -> list[str]:
        """I2: what went on in the background ends with its session, or with the next one where that was killed."""
        return [
            f"I2: process {pid} of the background goes on and nobody has it"
            for pid in running_with(ENDLESS)
            if _folder_of(pid) == str(self.world.workspace.resolve())
        ]

    def lost_output(self) -> list[str]:
        """I2: a reading that was broken off loses nothing of what a background shell had written."""
        output: dict[str, str] = {}
        for call in self.call_log.values():
            if call["tool_name"] == "bash_output" and call["status"] == "success":
                shell = str(call["arguments"]["id"])
                output[shell] = output.get(shell, "") + self.results.get(call["call_id"], "")
        return [
            f"I2: of {shell} was told {text!r}"
            for shell, text in output.items()
            if not marker_in({"command": text})
        ]

    def paid_twice(self) -> list[str]:
        """A summary that the conversation went on with is not asked for again, until an earlier checkpoint is."""
        asked: list[str] = []
        used: set[str] = set()
        again = []
        for note in self.world.notes("summary asked", "model asked", "goes back"):
            if note["kind"] == "goes back":
                asked, used = [], set()
            elif note["kind"] == "model asked":
                used.update(asked)
            elif note["of"] in used:
                again.append(f"a summary was paid for twice: {note['of'][:8]}")
            else:
                asked.append(note["of"])
        return again

    def miscounted(self) -> list[str]:
        """Each stored reply counts once as a request; summaries are requests without a reply of their own."""
        summaries = len(self.world.notes("summary asked"))
        wrong = []
        with read_database(self.world.database) as reader:
            for thread in reader.threads():
                # Those that work for a call of another branch are no part of what this one used.
                shown = {
                    call["id"]
                    for entry in reader.transcript(thread.thread_id)
                    for call in entry.body.get("tool_calls") or ()
                }
                family = [
                    thread.thread_id,
                    *(child for child, of, call in self.children if of == thread.thread_id and call in shown),
                ]
                replies = sum(entry.role == "assistant" for one in family for entry in reader.transcript(one))
                counted = (thread.usage or {}).get("requests", 0)
                if not replies <= counted <= replies + summaries:
                    wrong.append(f"usage: {counted} requests counted for {replies} replies in {thread.thread_id}")
        return wrong

    def lost_messages(self) -> list[str]:
        """I8: a message that the model was asked about is never sent again."""
        lost: list[str] = []
        asked: set[int] = set()
        for note in self.world.notes("sends", "model asked", "goes back"):
            if note["kind"] == "goes back":
                asked.clear()
            elif note["kind"] == "model asked":
                asked.add(note["turn"])
            elif note["turn"] in asked:
                lost.append(f"I8: the message of turn {note['turn']} was lost after the model was asked")
        return lost + self._said_otherwise()

    def _said_otherwise(self) -> list[str]:
        """I8: what waited is said once, in its order, and what was taken back never."""
        if self.world.notes("goes back", "failed", "stuck"):
            return []
        sent = sorted({note["turn"] for note in self.world.notes("sends")})
        said = [text for text in self.said if text.split()[0] in ("turn", "dropped")]
        return [] if said == [f"turn {turn}" for turn in sent] else [f"I8: of the turns {sent} was said {said}"]


def _folder_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115 - the kernel's text
    except OSError:
        return ""


def _small_effects(world: World, by_marker: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Broken promises about effects that are no commands; `by_marker` are the records of the call log."""
    return [*_memory(world, by_marker), *_pages(world, by_marker), *_plan(world, by_marker)]


def _memory(world: World, by_marker: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """I1: a fact is remembered once, and a success means that it is there."""
    text = _text(world.database.parent / "CONTEXT.md")
    wrong = []
    for marker, call in by_marker.items():
        count = text.count(marker)
        if call["tool_name"] == "save_memory" and (count > 1 or (_succeeded(call) and count == 0)):
            wrong.append(f"I1: {marker} is {call['status']} and is there {count} times in the memory")
    return wrong


def _pages(world: World, by_marker: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """I1, I2: a page is asked for once, and once more for each retry."""
    asked = Counter(_text(world.folder / "fetched").split())
    retries = Counter(note["marker"] for note in world.notes("answering") if note["answer"] == "retry")
    too_often = [
        f"I1/I2: {marker} was fetched {count} times with {retries[marker]} retries"
        for marker, count in asked.items()
        if count > 1 + retries[marker]
    ]
    return too_often + [
        f"I1: {marker} is a success and was never fetched"
        for marker, call in by_marker.items()
        if call["tool_name"] == "web_fetch" and _succeeded(call) and not asked[marker]
    ]


def _plan(world: World, by_marker: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """I1: the plan is what the newest call that wrote it left."""
    written = [
        marker for marker, call in by_marker.items() if call["tool_name"] == "todo_write" and _succeeded(call)
    ]
    if not written:
        return []
    with read_database(world.database) as reader:
        plan = reader.inspection("crash").state.values.get("todo") or []
    found = [marker_in(item) for item in plan]
    # Markers begin with turn, message and place in it.
    return [] if found == [max(written)] else [f"I1: the plan is {found}, and {max(written)} was written last"]


def _succeeded(call: Mapping[str, Any]) -> bool:
    return call["status"] == "success" and call.get("decision") != "done"


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
