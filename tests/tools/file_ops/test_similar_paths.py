import os
from pathlib import Path

import pytest

from tests.fakes.tool_ports import ToolEnvironment
from tools.file_ops.similar_paths import missing_path


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    around = ToolEnvironment(tmp_path)
    for name in ("app.py", "README.md", "pkg/model.py", "pkg/models.py", ".env", "pkg/deep/x.txt"):
        (around.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (around.workspace / name).write_text("x")
    (tmp_path / "outside.txt").write_text("x")
    return around


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("readme.md", "Did you mean 'README.md'?"),
        ("src/app.py", "Did you mean 'app.py'?"),
        ("pgk/modle.py", "Did you mean 'pkg/model.py' or 'pkg/models.py'?"),
        ("PKG/DEEP/X.TXT", "Did you mean 'pkg/deep/x.txt'?"),
        ("pkgs", "Did you mean 'pkg'?"),
        ("env", None),
        (".envv", "Did you mean '.env'?"),
        ("nothing/like/it", None),
        ("../outside.tx", None),
    ],
)
def test_a_path_that_leads_nowhere_is_told_with_what_it_may_have_meant(
    given: str, told: str | None, around: ToolEnvironment
) -> None:
    context = around.context()

    refused = missing_path(context.resolve(given), context, "look")

    assert str(refused) == f"{given!r} does not exist{f'. {told}' if told else '; look.'}"
    closed = around.context(may_read=lambda path: path.name != "README.md")
    unnamed = missing_path(closed.resolve("readme.md"), closed)
    assert str(unnamed) == "'readme.md' does not exist; list the folder with ls."


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser looks into everything")
def test_a_folder_that_may_not_be_looked_into_is_no_obstacle(around: ToolEnvironment) -> None:
    (around.workspace / "shut").mkdir(mode=0)
    context = around.context()

    assert str(missing_path(context.resolve("shutt/x"), context, "look")) == "'shutt/x' does not exist; look."
