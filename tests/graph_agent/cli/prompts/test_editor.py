from pathlib import Path

import pytest

from graph_agent.cli.prompts.editor import EditFailed, edit_arguments


def _use_editor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    editor = folder / "my editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", f"'{editor}' -x")


async def test_the_editor_gets_json_and_what_it_leaves_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use_editor(tmp_path, monkeypatch, """sed -i 's/old/new é/' "$2" """)

    assert await edit_arguments({"text": "old", "n": [1]}) == {"text": "new é", "n": [1]}


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "ended with code 3"),
        ("""echo '{"a": ' > "$2" """, "is not valid JSON"),
        ("""echo '[1]' > "$2" """, "must be a JSON object, not list"),
    ],
)
async def test_an_unusable_result_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    _use_editor(tmp_path, monkeypatch, script)

    with pytest.raises(EditFailed, match=why):
        await edit_arguments({"a": 1})


async def test_a_missing_editor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "/no/such/editor")

    with pytest.raises(EditFailed, match="'/no/such/editor' could not be started"):
        await edit_arguments({})
