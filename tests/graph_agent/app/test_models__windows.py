from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.models import ModelWindows
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.model.offline.model import OfflineModel
from graph_agent.ports.model import ContextWindow
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.scripted_model import ScriptedModel
from tests.graph_agent.config.test_model_choice__local_model import LIBRARY

HERE = Path("unused.db")
LONG = 50_000


def windows(**model: Any) -> ModelWindows:
    return ModelWindows(Settings(model=ModelSettings(**model), database=HERE), ScriptedModel())


async def test_what_is_set_goes_before_everything_and_nobody_is_asked() -> None:
    known = windows(
        base_url="http://127.0.0.1:9/v1", name="scripted", context_window=5_000, context_reserve=7, compact_at=50
    )

    assert await known(LONG) == ContextWindow(5_000, "set", 7, 50)


async def test_the_endpoint_is_asked_once_and_only_when_it_matters() -> None:
    with FakeOpenAI(models=[{"id": "x"}, {"id": "scripted", "max_model_len": 9_000}]) as server:
        known = windows(base_url=server.base_url, name="scripted")

        found = [await known(tokens) for tokens in (10, LONG, LONG)]

    assert [(window.tokens, window.source) for window in found] == [
        (128_000, "assumed"),
        (9_000, "endpoint"),
        (9_000, "endpoint"),
    ]


@pytest.mark.parametrize(("name", "tokens", "source"), [("gpt-4", 8_192, "table"), ("mine", 128_000, "assumed")])
async def test_an_endpoint_that_tells_nothing_leaves_it_to_the_table(name: str, tokens: int, source: Any) -> None:
    known = windows(base_url="http://127.0.0.1:9/v1")
    known.models.name = name  # type: ignore[misc]  # chosen in the chat

    assert await known(LONG) == ContextWindow(tokens, source)


async def test_the_offline_mode_has_nobody_to_write_a_summary() -> None:
    assert await ModelWindows(Settings(database=HERE), OfflineModel())(LONG) == ContextWindow(can_summarize=False)


async def test_a_local_model_takes_care_of_its_small_context_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LIBRARY)
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    settings = Settings(database=HERE, model=ModelSettings(local=tmp_path / "tiny.gguf", context_window=2_048))

    assert await ModelWindows(settings, OfflineModel())(LONG) == ContextWindow(can_summarize=False)
