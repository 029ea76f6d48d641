import json
import os
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.views.models import LEARNED
from graph_agent.model.openai.capabilities import Capabilities
from tests.fakes.gguf import LIBRARY, write_gguf
from tests.fakes.openai_server import TXT, FakeOpenAI
from tests.fakes.scripted_runtime import action
from tests.graph_agent.cli.commands import json_of, text_of, type_command
from tests.scenarios.command import Command

_NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(LIBRARY)
    for name in (
        *("OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL", "OPENAI_API_KEY"),
        *("GRAPH_AGENT_MODEL", "GRAPH_AGENT_LOCAL_MODEL"),
    ):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _configure(home: Path, url: str) -> Path:
    file = home / "config.toml"
    file.write_text(
        f'# mine\n[model]\nname = "a" # big\nbase_url = "{url}"\napi_key = "sk-SECRET-9"\n'
        '[models.fast]\nname = "b"\n[prices."b"]\ninput = 1\noutput = 2\n',
        encoding="utf-8",
    )
    return file


def test_profiles_and_models_are_listed_with_the_one_in_use(home: Path) -> None:
    with FakeOpenAI(models=("a", "b")) as server:
        _configure(home, server.base_url)
        listed, text = json_of("model", "list"), text_of("model", "list")

    assert listed == {
        "profiles": [{"name": "fast", "model": "b", "base_url": server.base_url, "in_use": False}],
        "models": [{"name": "a", "in_use": True}, {"name": "b", "in_use": False}],
        "error": None,
    }
    assert [line.split()[:2] for line in text.splitlines()[:3]] == [["NAME", "MODEL"], ["fast", "b"], ["*", "a"]]
    assert "SECRET" not in text


def test_a_failing_endpoint_exits_with_6_but_profiles_are_listed(home: Path) -> None:
    file = _configure(home, _NOWHERE)
    failed = type_command("model", "list", "--json")
    file.unlink()
    unconfigured = text_of("model", "list")

    listed = json.loads(failed.stdout)
    assert (failed.exit_code, [one["name"] for one in listed["profiles"]], listed["models"]) == (6, ["fast"], [])
    assert "no endpoint is configured" in unconfigured


def test_setting_the_default_model_keeps_comments(home: Path) -> None:
    file = _configure(home, _NOWHERE)

    shown = json_of("model", "use", "fast")

    assert (shown["name"], shown["profile"]) == ("fast", "fast")
    assert {"# mine", 'name = "fast" # big'} <= set(file.read_text(encoding="utf-8").splitlines())


def test_a_model_is_shown_without_its_key(home: Path) -> None:
    _configure(home, _NOWHERE)

    shown, text = json_of("model", "show", "fast"), text_of("model", "show")

    assert (shown["name"], shown["profile"], shown["key"], shown["price"]["output"]) == ("b", "fast", "set", 2.0)
    assert ("unknown" in text, "SECRET" in text) == (True, False)


def test_an_unusable_model_exits_with_6(home: Path) -> None:
    with FakeOpenAI([TXT("ready"), TXT("no tools here")]) as server:
        _configure(home, server.base_url)
        tested = type_command("model", "test")

    assert tested.exit_code == ExitCode.MODEL
    assert ("FAILS" in tested.stdout, "cannot use this model" in tested.stdout) == (True, True)


def test_limitations_of_a_model_are_written_with_yes(home: Path) -> None:
    script = [TXT("ready"), TXT("none"), TXT("none"), TXT("none"), TXT("no idea")]
    with FakeOpenAI(script * 3) as server:
        file = _configure(home, server.base_url)
        before = file.read_text(encoding="utf-8")
        available = type_command("model", "test", "fast").stdout
        untouched = file.read_text(encoding="utf-8")
        type_command("model", "test", "fast", "--yes")
        type_command("model", "test", "new:1", "--yes", "--json")

    written = file.read_text(encoding="utf-8")
    assert (untouched, '  images = "off"' in available, "Use --yes" in available) == (before, True, True)
    assert "# mine" in written
    assert '[models.fast]\nname = "b"\nimages = "off"\n' in written
    assert tomllib.loads(written)["models"]["new:1"] == {"name": "new:1", "images": "off"}


def test_a_local_model_is_shown_with_its_licence_and_how_to_undo(home: Path) -> None:
    text = text_of("model", "local", str(write_gguf(home / "tiny.gguf")))

    for part in ("GGUF 3, tiny", "Tiny Instruct", "licence  mit", "tiny (local, limited)", "--off", "config.toml"):
        assert part in text
    assert "warning" not in text


def test_a_base_model_and_an_endpoint_with_precedence_are_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("GRAPH_AGENT_MODEL", "big")

    text = text_of("model", "local", str(write_gguf(home / "base.gguf", {"general.architecture": "tiny"})))

    for part in ("no chat template", "It is not used yet.", "not named in the file"):
        assert part in text


def test_a_local_model_is_set_shown_and_removed(home: Path) -> None:
    model = write_gguf(home / "tiny.gguf")

    used = json_of("model", "local", str(model))
    shown = json_of("model", "local")
    removed = json_of("model", "local", "--off")
    text = text_of("model", "local").splitlines()

    facts = (used["file"], used["known"], used["header"]["licence"], used["answers"])
    assert facts == (str(model), None, "mit", "local")
    assert (shown["answers"], removed["answers"]) == ("local", "offline")
    assert (text[0].startswith("No model is connected: "), "model local FILE" in text[1]) == (
        True,
        True,
    )
    assert text_of("model", "local", "--off").startswith("Removed the local model")


@pytest.mark.slow
def test_a_local_model_can_be_used(tmp_path: Path) -> None:
    library = {"PYTHONPATH": os.pathsep.join(filter(None, (str(LIBRARY), os.environ.get("PYTHONPATH"))))}
    command = Command(tmp_path, extra_env=library)
    (command.workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    model = write_gguf(tmp_path / "tiny.gguf")
    replies = [action("change_file", file_path="calc.py"), "```\ndef add(a, b):\n    return a + b\n```"]
    model.write_bytes(model.read_bytes() + b"\nREPLIES\n" + "\n".join(map(json.dumps, replies)).encode())

    was_set = command("model", "local", str(model))
    code, asked = command.run_json("--thread", "t", "let add add")
    approved = command("approvals", "approve", asked["pending_approvals"][0]["call_id"])
    done = command("run", "--resume", "t", "--output", "json")

    assert (was_set.returncode, code, approved.returncode, done.returncode) == (0, 3, 0, 0)
    assert (command.workspace / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert json.loads(done.stdout)["answer"].startswith("Done. Wrote calc.py")
    assert command.json("threads", "show", "t")["model"] == "tiny (local, limited)"


def test_a_file_that_is_no_model_is_refused(home: Path) -> None:
    (home / "notes.txt").write_text("hello")

    refused = str(type_command("model", "local", "notes.txt").exception)

    assert refused.endswith("is not a GGUF file: it does not begin with the letters GGUF.")


@pytest.mark.slow
def test_a_missing_local_model_falls_back_to_offline_mode_with_the_reason(tmp_path: Path) -> None:
    command = Command(tmp_path, extra_env={"GRAPH_AGENT_LOCAL_MODEL": str(tmp_path / "gone.gguf")})

    done = command("run", "list")

    assert done.returncode == 0
    assert "The local model is not available: " in done.stdout
    assert "gone.gguf' cannot be read (No such file or directory)" in done.stdout


def test_whatever_is_learned_about_a_model_has_words() -> None:
    assert set(LEARNED) == {field.name for field in fields(Capabilities)}
