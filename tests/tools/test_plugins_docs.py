import re
from pathlib import Path

from tests.fakes.tool_ports import ToolSurroundings
from tools.plugins import load_plugin, source_from_text
from tools.running import execute

_PAGE = Path(__file__).parents[2] / "docs" / "tools.md"


async def test_the_tool_of_the_page_works_as_it_stands(tmp_path: Path) -> None:
    [text] = re.findall(r"```python\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL)
    around = ToolSurroundings(tmp_path)
    (around.workspace / "a.txt").write_text("one\n\ntwo\n")

    found = load_plugin(source_from_text("count_lines.py", text), around.workspace)
    [tool] = [plugin.make() for plugin in found.tools]
    results = [
        await execute(tool, arguments, around.context())
        for arguments in (
            {"file_path": "a.txt"},
            {"file_path": "a.txt", "only_filled": "true"},
            {"file_path": "none"},
        )
    ]

    assert found.problems == ()
    assert [result.output for result in results] == ["3 lines", "2 lines", ""]
    assert results[2].error == "'none' is no file; list the folder first."
