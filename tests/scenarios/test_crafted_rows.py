import json
import pickle
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import ormsgpack
import pytest

from tests.scenarios.command import Command

_AUDITED = Path(__file__).parents[1] / "fakes" / "audited"
_KINDS = ("constructor", "pickle", "lc", "method")


class _Touches:
    """Becomes a call of `os.system` when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, ...]:
        return subprocess.call, (["touch", str(self._marker)],)


def _crafted(kind: str, marker: Path) -> tuple[str, bytes]:
    """A stored value that runs `touch` in readers that build what a row asks for."""
    command = f"touch {marker}"
    match kind:
        case "constructor":
            return "msgpack", ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("os", "system", command))))
        case "method":
            content = ("subprocess", "Popen", {"args": command, "shell": True}, "communicate")
            return "msgpack", ormsgpack.packb({"channel_values": ormsgpack.Ext(5, ormsgpack.packb(content))})
        case "pickle":
            return "pickle", pickle.dumps(_Touches(marker))
        case _:
            wanted = {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": [command]}
            return "json", json.dumps(wanted).encode()


def _copied(database: sqlite3.Connection, thread_id: str) -> None:
    for table in ("threads", "checkpoints", "writes", "transcript", "call_log"):
        names = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        others = ", ".join(name for name in names if name != "thread_id")
        database.execute(
            f"INSERT INTO {table} (thread_id, {others}) SELECT ?, {others} FROM {table} WHERE thread_id = 'good'",  # noqa: S608 - names of our own
            (thread_id,),
        )


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """One thread as it should be, and one for each kind of crafted value, in every row that holds one."""
    made = Command(tmp_path)
    assert made("run", "list", "--thread", "good").returncode == 0
    with closing(sqlite3.connect(tmp_path / "home" / "data" / "graph-agent.db")) as database, database:
        for kind in _KINDS:
            _copied(database, kind)
            crafted = _crafted(kind, tmp_path / "marker")
            database.execute(
                "UPDATE checkpoints SET type = ?, checkpoint = ? WHERE thread_id = ?", (*crafted, kind)
            )
            database.execute("UPDATE writes SET type = ?, value = ? WHERE thread_id = ?", (*crafted, kind))
            metadata = json.dumps({"lc": 1, "type": "constructor", "id": ["os", "system"], "step": 1})
            database.execute("UPDATE checkpoints SET metadata = ? WHERE thread_id = ?", (metadata.encode(), kind))
    database.close()
    audit = {
        "PYTHONPATH": str(_AUDITED),
        "AUDIT_LOG": str(tmp_path / "audit.log"),
        "AUDIT_FOLDER": str(tmp_path / "w"),
    }
    return Command(tmp_path, extra_env=audit)


@pytest.mark.parametrize("kind", _KINDS)
def test_a_crafted_row_is_refused_or_shown_and_never_becomes_what_it_asks_for(
    command: Command, tmp_path: Path, kind: str
) -> None:
    resumed = command("run", "--resume", kind)
    inspected = command("inspect", kind, "--full")
    exported = command("threads", "export", kind)

    assert (resumed.returncode, "which this program never writes" in resumed.stderr) == (1, True)
    assert "Traceback" not in f"{resumed.stderr}{inspected.stderr}{exported.stderr}"
    assert ((tmp_path / "marker").exists(), (tmp_path / "audit.log").read_text()) == (False, "")


def test_text_that_looks_like_an_object_stays_text(tmp_path: Path) -> None:
    command = Command(tmp_path)
    text = json.dumps(
        {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "touch marker"}}
    )

    codes = [command("run", text, "--thread", "t").returncode for _ in range(2)]

    shown = command.json("inspect", "t")["values"]["messages"]
    assert (codes, [one["content"] for one in shown if one["content"] == text]) == ([1, 1], [text, text])
    assert not (command.workspace / "marker").exists()
