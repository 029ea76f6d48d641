import io
import json
import sys
from pathlib import Path

import pytest

from graph_agent.cli.views.settings import (
    current_project,
    list_trusted,
    print_ignored_files,
    revoke_trust,
    trust_folder,
)
from graph_agent.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    made = tmp_path / "project"
    (made / ".graph-agent").mkdir(parents=True)
    (made / ".graph-agent" / "config.toml").write_text(
        '[policy]\nallow = ["bash(make *)"]\ndeny = ["bash(rm *)"]\n'
    )
    monkeypatch.chdir(made)
    return made.resolve()


def _types(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_folder_is_trusted_after_showing_what_that_turns_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _types(monkeypatch, "y\n")

    trust_folder(None, is_settled=False, as_json=False)

    assert capsys.readouterr().out.splitlines() == [
        f"{folder} brings files that change what the agent does here:",
        "  .graph-agent/config.toml",
        "If you trust the folder, they turn on:",
        "    policy.allow: bash(make *)",
        "    policy.deny: bash(rm *)",
        f"Trust this folder? [y/N] {folder}: trusted",
    ]


def test_after_a_change_it_is_shown_what_is_new_and_what_is_gone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trust_folder(None, is_settled=True, as_json=False)
    config = folder / ".graph-agent" / "config.toml"
    config.write_text('[policy]\nallow = ["bash(make *)", "bash(\\u001b[2J)"]\n')
    capsys.readouterr()
    _types(monkeypatch, "\n")

    trust_folder(str(folder), is_settled=False, as_json=False)

    assert capsys.readouterr().out.splitlines()[1:] == [
        "  .graph-agent/config.toml (changed since you trusted it)",
        "If you trust the folder, they turn on:",
        "    policy.allow: bash(make *)",
        "  + policy.allow: bash(\\x1b[2J)",
        "  - policy.deny: bash(rm *)",
        f"Trust this folder? [y/N] {folder}: not trusted: you said no",
    ]


def test_json_asks_nobody_and_says_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust_folder(None, is_settled=False, as_json=True)
    before = json.loads(capsys.readouterr().out)
    trust_folder(None, is_settled=True, as_json=True)
    after = json.loads(capsys.readouterr().out)

    files = [{"name": ".graph-agent/config.toml", "sha256": current_project().files[0].sha256, "news": ""}]
    lines = ["policy.allow: bash(make *)", "policy.deny: bash(rm *)"]
    shown = {"folder": str(folder), "files": files, "refused": {}, "turns_on": lines}
    assert before == {**shown, "trust": "untrusted", "counts": False}
    assert after == {**shown, "trust": "trusted", "counts": True}


def test_trust_is_listed_and_revoked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list_trusted(as_json=False)
    trust_folder(None, is_settled=True, as_json=False)
    list_trusted(as_json=True)
    listed = json.loads(capsys.readouterr().out.split("trusted\n")[-1])["folders"]
    revoke_trust(None, as_json=False)
    revoke_trust(str(folder), as_json=True)

    told, _, last = capsys.readouterr().out.partition("\n")
    assert [(one["folder"], one["trusted"], [*one["files"]]) for one in listed] == [
        (str(folder), True, [".graph-agent/config.toml"])
    ]
    assert told == f"{folder} is not trusted any more; the next chat there asks"
    assert json.loads(last) == {"folder": str(folder), "revoked": False}


def test_what_is_ignored_goes_to_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_ignored_files(current_project())

    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith("note: .graph-agent/config.toml of")) == ("", True)


def test_a_folder_that_is_none_is_named(folder: Path) -> None:
    with pytest.raises(UsageError, match="'none' is not a folder"):
        trust_folder("none", is_settled=True, as_json=False)
