from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from graph_agent.app.custom_model import CustomModel
from graph_agent.app.models import (
    ThreadModels,
    budget_of,
    inspect_model_file,
    meter_of,
    open_model,
    require_price,
    settings_for_choice,
)
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ConfigError, ModelError, UsageError
from graph_agent.model.local import gguf
from graph_agent.model.local.gguf import KNOWN_MODELS, KnownModel, file_sha256
from graph_agent.model.offline.model import OfflineModel
from graph_agent.model.openai.context_windows import ModelWindows
from graph_agent.model.openai.endpoint import EndpointModel
from graph_agent.ports import Delta, ModelRequest, SystemClock
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import Budget, Rate
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.threads import ThreadTable
from tests.fakes.gguf import LIBRARY, write_gguf
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.scripted_model import ScriptedModel


def settings_for(url: str | None, name: str | None = None) -> Settings:
    return Settings(model=ModelSettings(base_url=url, name=name), database=Path("unused.db"))


async def test_without_an_endpoint_there_is_nothing_to_choose() -> None:
    model = await open_model(settings_for(None), may_choose_later=False)

    assert (model.name, await model.names()) == ("", ())
    with pytest.raises(UsageError, match="Cannot switch to 'gpt': there is no endpoint"):
        await model.switch("gpt")


async def test_an_unclear_model_is_an_error_unless_it_may_be_chosen_later() -> None:
    with FakeOpenAI(models=["one", "two"]) as server:
        with pytest.raises(UsageError, match="set GRAPH_AGENT_MODEL"):
            await open_model(settings_for(server.base_url), may_choose_later=False)
        later = await open_model(settings_for(server.base_url), may_choose_later=True)

    assert later.name is None


async def test_an_endpoint_that_is_down_is_in_the_way_of_nothing_yet() -> None:
    model = await open_model(settings_for("http://127.0.0.1:9/v1"), may_choose_later=False)

    assert (model.name, model.label) == (None, "no model chosen @ 127.0.0.1:9")


async def test_the_chosen_model_is_noted_with_the_thread(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "x.db")
    threads = ThreadTable(database, SystemClock())
    await threads.create("t1", str(tmp_path), "before", "default")
    model = await open_model(settings_for("http://127.0.0.1:9/v1"), may_choose_later=True)
    models = ThreadModels(model, threads, "t1")

    await models.switch("other")

    row = await threads.get("t1")
    assert row is not None
    assert (models.name, models.label, row.model) == ("other", "other @ 127.0.0.1:9", "other @ 127.0.0.1:9")
    await model.close()
    await database.close()


async def test_a_choice_is_kept_with_the_thread_and_made_again_where_it_can_still_be_had(tmp_path: Path) -> None:
    settings = settings_for("http://127.0.0.1:9/v1", "one").model_copy(
        update={"models": {"fast": ModelSettings(name="small", base_url="http://127.0.0.1:8/v1")}}
    )
    model = await open_model(settings, may_choose_later=False)
    async with await Database.open(tmp_path / "a.db") as database:
        threads = ThreadTable(database, SystemClock())
        await threads.create("t", "/w", model.label, "default")
        await ThreadModels(model, threads, "t").switch("fast")
        row = await threads.get("t")

    assert row is not None
    again = settings_for_choice(settings, row.model_choice)
    assert again is not None
    assert (row.model, again.profile, again.model.name) == ("small @ 127.0.0.1:8", "fast", "small")
    assert settings_for_choice(settings_for("http://127.0.0.1:9/v1", "one"), row.model_choice) is None
    assert (
        settings_for_choice(settings, '{"profile": "", "name": "two", "endpoint": "http://127.0.0.1:7/v1"}') is None
    )
    plain = settings_for_choice(settings, '{"profile": "", "name": "two", "endpoint": "http://127.0.0.1:9/v1"}')
    assert plain is not None
    assert plain.model.name == "two"


def settings(**values: object) -> Settings:
    model = ModelSettings(base_url="http://127.0.0.1:9/v1", name="m")
    return Settings.model_validate({"database": Path("x.db"), "model": model, **values})


def test_budgets_and_prices_come_from_the_settings_and_models_in_this_process_cost_nothing() -> None:
    found = settings(max_tokens=1, max_cost=2, max_thread_tokens=3, max_thread_cost=4, currency="EUR")
    local = Settings(database=Path("x.db"), model=ModelSettings(local=Path("m/tiny.gguf")))

    assert budget_of(found) == Budget(1, 2, 3, 4)
    assert meter_of(found).currency == "EUR"
    prices = [meter_of(found).price_of(OFFLINE_LABEL), meter_of(local).price_of("tiny (local, limited)")]
    assert prices == [Rate(0, 0)] * 2
    require_price(settings(max_cost=1), OfflineModel())


_PRICE = {"input": 1, "output": 1}
_FALLBACK = {
    "model": ModelSettings(base_url="http://127.0.0.1:9/v1", name="m", fallback=("spare",)),
    "models": {"spare": {"base_url": "http://127.0.0.1:8/v1", "name": "n"}},
}


@pytest.mark.parametrize(
    ("values", "unpriced"),
    [
        ({}, ""),
        ({"max_cost": 1}, "m"),
        ({"max_cost": 1, "prices": {"m": _PRICE}}, ""),
        ({"max_cost": 1, "prices": {"m": _PRICE}, **_FALLBACK}, "n"),
        ({"max_cost": 1, "prices": {"m": _PRICE, "n @ 127.0.0.1:8": _PRICE}, **_FALLBACK}, ""),
    ],
)
async def test_a_limit_on_costs_needs_the_price_of_the_model_and_of_each_fallback(
    values: dict[str, Any], unpriced: str
) -> None:
    found = settings(**values)

    if unpriced:
        with pytest.raises(UsageError, match=rf'\[prices."{unpriced}"\] input = …'):
            require_price(found, EndpointModel(found))
    else:
        require_price(found, EndpointModel(found))


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
    model = ScriptedModel()
    model.name = name  # chosen in the chat
    known = ModelWindows(Settings(model=ModelSettings(base_url="http://127.0.0.1:9/v1"), database=HERE), model)

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


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(LIBRARY)
    return write_gguf(tmp_path / "tiny.gguf")


def known_as(model: Path, digest: str) -> KnownModel:
    return replace(KNOWN_MODELS[0], bytes=model.stat().st_size, sha256=digest)


def test_a_known_file_is_recognized_by_its_content(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_as(model, file_sha256(model))
    monkeypatch.setattr(gguf, "find_known_model", lambda size: known if size == known.bytes else None)

    found = inspect_model_file(str(model))

    assert (found.known, found.label) == (known, "tiny (local, limited)")


def test_a_file_with_other_content_than_the_known_one_or_without_its_runtime_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write_gguf(tmp_path / "tiny.gguf")
    with pytest.raises(UsageError, match=r"pip install '\.\[local\]' in the checkout"):
        inspect_model_file(str(model))
    monkeypatch.setattr(gguf, "find_known_model", lambda _: known_as(model, "0" * 64))
    with pytest.raises(UsageError, match="damaged or altered"):
        inspect_model_file(str(model))


_HERE = "tests.fakes.model_factories"
_REQUEST = ModelRequest([HumanMessage("hi")], ({"type": "function", "function": {"name": "f"}},))


async def test_what_a_factory_makes_answers_in_pieces_and_its_failures_are_told() -> None:
    model = CustomModel(f"{_HERE}:speaks")
    pieces: list[Delta] = []

    reply = await model.reply(_REQUEST, pieces.append)

    assert (reply.text, "".join(piece.text for piece in pieces)) == ("hello there", "hello there")
    assert model.label.endswith(f" @ {_HERE}:speaks")
    with pytest.raises(ModelError, match="failed: "):
        await model.reply(_REQUEST, pieces.append)
    with pytest.raises(UsageError, match="defines the model"):
        await model.switch("other")


async def test_a_call_that_is_cut_off_is_said_to_be_so_and_an_empty_reply_is_asked_for_again() -> None:
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    reply = await CustomModel(f"{_HERE}:cuts", sleep=note).reply(_REQUEST, lambda _: None)

    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("f", {})]
    assert "cut off" in reply.response_metadata["unusable_arguments"]["0"]
    assert len(waits) == 1


async def test_a_model_that_knows_no_functions_is_given_the_tools_as_text() -> None:
    model = CustomModel(f"{_HERE}:knows_no_functions")

    reply = await model.reply(_REQUEST, lambda _: None)

    assert ([call["name"] for call in reply.tool_calls], reply.text) == (["f"], "")


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        (f"{_HERE}:fails", "RuntimeError: no licence"),
        (f"{_HERE}:makes_nothing", "returned a str, not a LangChain chat model"),
        (f"{_HERE}:missing", "AttributeError"),
        ("no.such.module:make", "ModuleNotFoundError"),
    ],
)
def test_a_line_that_makes_no_model_is_named(factory: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        CustomModel(factory)
