import os
from pathlib import Path

import pytest

from graph_agent.config.model_choice import local_label, local_model_problem

LIBRARY = Path(__file__).parents[2] / "fakes/local_library"


def test_the_label_says_that_the_model_is_local_and_limited() -> None:
    assert local_label(Path("~/models/qwen-0.5b.gguf")) == "qwen-0.5b (local, limited)"


def test_a_file_of_the_format_can_be_used_where_the_runtime_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "a.gguf"
    model.write_bytes(b"GGUF...")

    without = local_model_problem(model)
    monkeypatch.syspath_prepend(LIBRARY)
    with_runtime = local_model_problem(model)

    assert (without, with_runtime) == ("its runtime is not installed: pip install '.[local]' in the checkout", "")


def test_a_file_that_is_missing_or_of_another_format_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")

    told = [local_model_problem(tmp_path / name) for name in ("a.txt", "none", ".")]

    assert [text.removeprefix(repr(str(tmp_path))[:-1]).partition(";")[0] for text in told] == [
        "/a.txt' is no GGUF file",
        "/none' cannot be read (No such file or directory)",
        "' is a folder, no file",
    ]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.gguf")

    assert "`graph-agent model local FILE` names another" in local_model_problem(tmp_path / "a.gguf")
