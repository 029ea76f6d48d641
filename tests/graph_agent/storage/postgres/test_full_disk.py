"""The disk of the server is full while a worker runs: nothing is lost, and it continues once there is space."""

import os
from collections import Counter
from pathlib import Path

from tests.fakes.forked_command import Start, start
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.postgres_server import PostgresServer
from tests.scenarios.command import NO_SANDBOX, Command, until

_FILL = """
INSERT INTO graph_agent.checkpoints (thread_id, checkpoint_id)
SELECT 'filler', number || repeat('x', 1000) FROM generate_series(1, 20000) AS number
"""


def test_a_worker_continues_its_tasks_once_the_full_disk_of_the_server_has_space(
    postgres: PostgresServer, postgres_template: str, tmp_path: Path
) -> None:
    url = postgres.create_database(postgres_template)
    said = tmp_path / "said"
    places = [tmp_path / "one", tmp_path / "two"]
    replies = [
        TC("c1", "bash", {"command": "echo c1 >> ledger"}),
        TXT("ok"),
    ]
    with FakeOpenAI(replies, strict=True, by_history=True) as model:
        command = Command(tmp_path, model.base_url, {"GRAPH_AGENT_DB": url}, NO_SANDBOX)

        def statuses() -> Counter[str]:
            return Counter(str(task["status"]) for task in command.json("tasks", "list")["tasks"])

        for place in places:
            place.mkdir()
            command.json("tasks", "add", "go", "--workspace", str(place), "--mode", "bypassPermissions")
        with postgres.full_disk(url, _FILL):
            with Path(os.devnull).open("rb") as nothing, said.open("wb") as output:
                streams = [nothing.fileno(), output.fileno(), output.fileno()]
                worker = start(Start(["worker", "-j", "2"], command.workspace, command.env), streams)
            until(lambda: said.read_text().count("its disk is full") >= len(places))
            assert not {"done", "failed"} & statuses().keys()
        until(lambda: statuses() == {"done": 2})
        command.kill(worker)

    assert [(place / "ledger").read_text() for place in places] == ["c1\n"] * 2
    assert model.faults == []
