from pathlib import Path

import pytest

from graph_agent.app.models import ThreadModels, open_model, settings_for_choice
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import UsageError
from graph_agent.ports import SystemClock
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.threads import ThreadTable
from tests.fakes.openai_server import FakeOpenAI


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
