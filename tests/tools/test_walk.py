import random
from pathlib import Path

import pytest

from tests.fakes.tool_ports import ToolEnvironment
from tools.file_ops.glob import GlobTool
from tools.file_ops.grep import GrepTool
from tools.file_ops.ls import LsTool
from tools.walk import FoundFile, NewestFiles


def test_of_very_many_the_newest_are_kept_in_their_order_and_all_are_counted() -> None:
    files = [FoundFile(-(at // 3), f"{at}", f"/w/{at}") for at in range(5_000)]
    random.Random(4).shuffle(files)
    newest = NewestFiles(10)
    for file in files:
        newest.total += 1
        if file.age <= newest.oldest:
            newest.add(file)

    few = NewestFiles(3)
    few.add(FoundFile(-1, "a", "/w/a"))
    few.add(FoundFile(-2, "b", "/w/b"))

    assert (newest.files(), newest.total) == (sorted(files)[:10], 5_000)
    assert [file.relative for file in few.files()] == ["b", "a"]


@pytest.mark.parametrize(
    ("folder", "beside", "is_left_out"),
    [
        ("node_modules", "", True),
        ("lib/node_modules", "", True),
        ("bower_components", "", True),
        ("__pycache__", "", True),
        ("__pypackages__", "", True),
        ("venv", "", True),
        ("target", "", True),
        ("dist", "", True),
        ("build", "package.json", True),
        ("build", "", False),
        ("distribution", "", False),
    ],
)
async def test_what_programs_generate_is_left_out_counted_and_shown_if_it_is_named(
    tmp_path: Path, folder: str, beside: str, *, is_left_out: bool
) -> None:
    environment = ToolEnvironment(tmp_path)
    made = environment.workspace / folder
    made.mkdir(parents=True)
    for file in (made / "in.txt", environment.workspace / "own.txt", environment.workspace / (beside or "x")):
        file.write_text("needle")
    context = environment.context()

    found = [
        await LsTool().execute(path=str(made.parent), context=context),
        await GlobTool().execute(pattern="*.txt", context=context),
        await GrepTool().execute(pattern="needle", tool_context=context),
    ]
    named = [
        await LsTool().execute(path=folder, context=context),
        await GlobTool().execute(pattern=f"{folder}/*.txt", context=context),
        await GrepTool().execute(pattern="needle", path=folder, tool_context=context),
    ]

    note = f"[left out: 1 generated ({made.name}; name one to see it)]"
    assert [result.output.endswith(note) for result in found] == [is_left_out] * 3
    assert ["in.txt" in result.output for result in found[1:]] == [not is_left_out] * 2
    assert ["in.txt" in result.output for result in named] == [True] * 3
