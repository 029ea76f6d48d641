import json
from pathlib import Path

import pytest

from tests.fakes.tool_ports import ToolSurroundings
from tools.file_ops.notebook import as_cells
from tools.file_ops.read_file import ReadFileTool

_BOOK = {
    "nbformat": 4,
    "cells": [
        {"cell_type": "markdown", "source": "# Title"},
        {
            "cell_type": "code",
            "source": ["x = 1\n", "x"],
            "outputs": [
                {"output_type": "stream", "text": ["a\n", "b\n"]},
                {"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\x1b[0m"]},
                {"output_type": "execute_result", "data": {}},
                "odd",
            ],
        },
        "odd",
    ],
}


def test_cells_and_outputs_stand_below_each_other() -> None:
    assert as_cells(json.dumps(_BOOK)) == (
        "--- cell 1: markdown ---\n# Title\n"
        "--- cell 2: code ---\nx = 1\nx\n"
        "--- output of cell 2 ---\na\nb\n"
        "--- output of cell 2 ---\n<Figure>\n[image/png, not shown]\n"
        "--- output of cell 2 ---\nValueError: bad\n"
    )


def test_a_long_output_is_shortened() -> None:
    output = {"output_type": "stream", "text": "x\n" * 5_000}
    book = {"nbformat": 4, "cells": [{"cell_type": "code", "source": "", "outputs": [output]}]}

    shown = as_cells(json.dumps(book)) or ""

    assert len(shown) < 2_200
    assert "the output has 10000 characters" in shown


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"cells": []}', '{"cells": 1, "nbformat": 4}', "[" * 100_000]
)
def test_what_is_no_notebook_is_none(text: str) -> None:
    assert as_cells(text) is None


@pytest.mark.parametrize("outputs", [5, True, "text", {"output_type": "stream"}])
def test_a_cell_whose_outputs_are_no_list_is_shown_without_them(outputs: object) -> None:
    book = {"nbformat": 4, "cells": [{"cell_type": "code", "source": "x", "outputs": outputs}]}

    assert as_cells(json.dumps(book)) == "--- cell 1: code ---\nx\n"


async def test_a_notebook_is_read_as_its_cells_and_a_broken_one_as_its_text(tmp_path: Path) -> None:
    around = ToolSurroundings(tmp_path)
    (around.workspace / "a.ipynb").write_text(json.dumps(_BOOK))
    (around.workspace / "b.ipynb").write_text("{broken")

    whole = await ReadFileTool().execute(file_path="a.ipynb", limit=2, context=around.context())
    broken = await ReadFileTool().execute(file_path="b.ipynb", context=around.context())

    assert whole.output.splitlines()[0].endswith("--- cell 1: markdown ---")
    assert "lines 1 to 2 of 13; continue with offset=3; a notebook, shown as its cells" in whole.output
    assert "{broken" in broken.output
