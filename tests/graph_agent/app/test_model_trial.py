from pathlib import Path

import pytest

from graph_agent.app.model_trial import (
    ImageProbe,
    Listed,
    ProbeResult,
    list_available_models,
    red_square,
    show_square,
    try_model,
)
from graph_agent.config.paths import capabilities_file
from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import UsageError
from graph_agent.model.openai.capabilities import CapabilityStore
from tests.fakes.openai_server import ERR, TC, TCS, TXT, FakeOpenAI, Reply
from tools.file_ops.images import is_whole_image, media_type_of


def settings(folder: Path, url: str | None) -> Settings:
    model = ModelSettings(base_url=url, name="m" if url else None, context_window=4_096)
    return Settings(database=folder / "x.db", model=model, models={"fast": ModelSettings(name="small")})


async def found_with(folder: Path, *replies: Reply) -> dict[str, ProbeResult]:
    with FakeOpenAI(replies) as server:
        return {one.name: one for one in await try_model(settings(folder, server.base_url))}


async def test_a_model_that_can_all_of_it_works(tmp_path: Path) -> None:
    both = TCS(("a", "look_up", {"key": "alpha"}), ("b", "look_up", {"key": "beta"}))

    found = await found_with(
        tmp_path, TXT("ready"), TC("c", "look_up", {"key": "alpha"}), TXT("violet-4711"), both, TXT("Red.")
    )

    assert tuple(found) == (
        *("answers", "streams", "calls a tool", "reads a result", "calls two at once"),
        *("usage", "window", "sees images"),
    )
    assert [name for name, one in found.items() if not one.ok] == []
    assert (found["calls a tool"].detail, found["window"].detail) == ("look_up(alpha)", "4,096 tokens (set)")


async def test_what_it_cannot_is_told_and_only_some_of_it_matters(tmp_path: Path) -> None:
    one = TC("a", "look_up", {"key": "alpha"})

    with FakeOpenAI([TXT("ready", usage=None), one, TXT("no idea"), one]) as server:
        tested = settings(tmp_path, server.base_url)
        found = {result.name: result for result in await try_model(tested)}
        store = CapabilityStore(capabilities_file(tested.database))

        assert store.load(server.base_url, tested.model.name or "").calls_tools is False
    assert [name for name, one in found.items() if not one.ok and one.matters] == ["reads a result"]
    assert (found["usage"].ok, found["calls two at once"].ok) == (False, False)


@pytest.mark.parametrize(
    ("answer", "tokens", "found"),
    [
        ("violet-4711", 12_000, (True, None)),
        ("I see none", 12_000, (False, None)),
        ("I see none", 2048, (False, 2048)),
    ],
)
async def test_a_server_that_drops_the_beginning_of_a_long_request_is_found(
    tmp_path: Path, answer: str, tokens: int, found: tuple[bool, int | None]
) -> None:
    usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
    one = TC("a", "look_up", {"key": "alpha"})
    with FakeOpenAI([TXT("ready"), one, TXT("violet-4711"), one, TXT(answer, usage=usage), TXT("red")]) as server:
        large = settings(tmp_path, server.base_url)
        large = large.model_copy(update={"model": large.model.model_copy(update={"context_window": 100_000})})
        length = {each.name: each for each in await try_model(large)}["reads a long request"]

    assert (length.ok, length.setting and length.setting[1]) == found


async def test_where_nothing_further_can_succeed_it_stops(tmp_path: Path) -> None:
    refused = await found_with(tmp_path, ERR(401, {"error": {"message": "no such key"}}))
    mute = await found_with(tmp_path, TXT("ready"), TXT("I have no tools"))

    assert [*refused] == ["answers"]
    assert "401" in refused["answers"].detail or "key" in refused["answers"].detail
    assert (mute["calls a tool"].ok, "reads a result" in mute) == (False, False)


async def test_an_endpoint_that_fails_is_asked_once_more_and_no_longer_waited_for(tmp_path: Path) -> None:
    with FakeOpenAI([ERR(500, {"error": {"message": "broken"}})] * 8) as server:
        (only,) = await try_model(settings(tmp_path, server.base_url))

    assert (only.ok, len(server.bodies)) == (False, 2)
    assert only.detail.endswith("Gave up after 2 tries.")


async def test_profiles_are_listed_also_where_the_endpoint_tells_nothing(tmp_path: Path) -> None:
    with FakeOpenAI(models=("a", "b")) as server:
        listed = await list_available_models(settings(tmp_path, server.base_url))
    down = await list_available_models(settings(tmp_path, "http://127.0.0.1:9/v1"))

    assert listed == Listed(("fast",), ("a", "b"))
    assert (down.profiles, down.models, bool(down.error)) == (("fast",), (), True)
    assert (await list_available_models(settings(tmp_path, None))).error == "no endpoint is configured"
    with pytest.raises(UsageError, match=r"nothing to test\.\nTo connect a model: "):
        await try_model(settings(tmp_path, None))


_WRITTEN_CALL = '<tool_call>\n{"name": "look_up", "arguments": {"key": "alpha"}}\n</tool_call>'
_NO_TOOLS = ERR(400, {"error": {"message": "this model does not support tools"}})


@pytest.mark.parametrize(
    ("replies", "settings"),
    [
        (
            (TXT("ready"), _NO_TOOLS, TXT(_WRITTEN_CALL), TXT("violet-4711"), TXT("no")),
            {"calls a tool": ("tool_protocol", "prompt")},
        ),
        (
            (
                *(TXT("ready"), TXT("no call"), TXT(_WRITTEN_CALL), TXT("violet-4711"), TXT("one")),
                TXT("no idea"),
            ),
            {"calls a tool": ("tool_protocol", "prompt"), "sees images": ("images", "off")},
        ),
    ],
    ids=["an endpoint that refuses tools", "a model that calls no function"],
)
async def test_what_an_endpoint_lacks_comes_with_the_setting_for_it(
    tmp_path: Path, replies: tuple[Reply, ...], settings: dict[str, tuple[str, str]]
) -> None:
    found = await found_with(tmp_path, *replies)

    assert {name: one.setting for name, one in found.items() if one.setting} == settings
    assert (found["calls a tool"].ok, found["reads a result"].ok) == (True, True)


async def test_the_window_that_the_endpoint_tells_is_one_to_write_down(tmp_path: Path) -> None:
    with FakeOpenAI([TXT("ready"), TXT("none")], models=({"id": "m", "max_model_len": 9_000},)) as server:
        bare = ModelSettings(base_url=server.base_url, name="m")
        found = await try_model(Settings(database=tmp_path / "x.db", model=bare))

    assert [one.setting for one in found if one.name == "window"] == [("context_window", 9_000)]


async def shown_to(*replies: Reply) -> tuple[ImageProbe, list[dict[str, object]]]:
    with FakeOpenAI(replies, strict=True) as server:
        look = await show_square(ModelSettings(base_url=server.base_url), "m")
        return look, server.bodies


async def test_a_model_sees_only_if_it_names_the_colour() -> None:
    seen, bodies = await shown_to(TXT("It is Red."))
    guessed, _ = await shown_to(TXT("blue, I think"))
    refused, _ = await shown_to(ERR(400, "image input is not supported"), TXT("I cannot see it"))
    failed, _ = await shown_to(ERR(401, "no such key"))

    assert "data:image/png;base64," in str(bodies[0]["messages"])
    assert [(one.ok, one.is_blind) for one in (seen, guessed, failed)] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert refused == ImageProbe(ok=False, detail="the endpoint rejects them", is_blind=True)


def test_the_square_is_a_whole_png_of_a_size_that_models_take() -> None:
    picture = red_square()

    assert (media_type_of(picture), is_whole_image(picture, "image/png")) == ("image/png", True)
    assert int.from_bytes(picture[16:20]) == int.from_bytes(picture[20:24]) == 32
