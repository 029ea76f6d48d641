import json

import pytest

from graph_agent.cli.views.tools import list_tools, show_tool
from graph_agent.errors import ConfigError, UsageError


def test_the_list_has_the_fixed_fields(capsys: pytest.CaptureFixture[str]) -> None:
    list_tools("plan", as_json=True)

    tools = {tool["name"]: tool for tool in json.loads(capsys.readouterr().out)["tools"]}
    assert {name: tools["bash"][name] for name in ("name", "risk", "kind", "origin", "offered")} == {
        "name": "bash",
        "risk": "high",
        "kind": "execute",
        "origin": "builtin",
        "offered": False,
    }


def test_a_tool_is_shown_as_the_model_gets_it(capsys: pytest.CaptureFixture[str]) -> None:
    show_tool("ls", None, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    show_tool("ls", None, as_json=False)
    text = capsys.readouterr().out

    assert shown["description"] in text
    assert json.dumps(shown["parameters"], indent=2) in text
    assert set(shown["parameters"]["properties"]) == {"path", "depth"}


def test_the_table_tells_the_first_sentence_of_each_whole(capsys: pytest.CaptureFixture[str]) -> None:
    list_tools(None, as_json=False)

    ends = [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()]
    assert {"Replace text in a file", "Run a command with bash in the workspace"} <= set(ends)
    assert "conversations, e.g. a preference" in "".join(ends)


def test_an_unknown_tool_and_an_unknown_mode_are_named() -> None:
    with pytest.raises(UsageError, match="there is no tool 'read_fil'; did you mean 'read_file'"):
        show_tool("read_fil", None, as_json=False)
    with pytest.raises(UsageError, match="there is no tool ''"):
        show_tool("", None, as_json=False)
    with pytest.raises(ConfigError, match="flag --mode: mode = 'yolo'"):
        list_tools("yolo", as_json=False)
