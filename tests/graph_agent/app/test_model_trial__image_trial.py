from graph_agent.app.model_trial import ImageProbe, show_square
from graph_agent.config.settings import ModelSettings
from tests.fakes.openai_server import ERR, TXT, FakeOpenAI, Reply


async def shown_to(*replies: Reply) -> tuple[ImageProbe, list[dict[str, object]]]:
    with FakeOpenAI(replies, strict=True) as server:
        look = await show_square(ModelSettings(base_url=server.base_url), "m")
        return look, server.bodies


async def test_a_model_that_names_the_colour_sees() -> None:
    look, bodies = await shown_to(TXT("It is Red."))

    assert (look.ok, "data:image/png;base64," in str(bodies[0]["messages"])) == (True, True)


async def test_a_model_that_guesses_or_an_endpoint_that_refuses_does_not() -> None:
    guessed, _ = await shown_to(TXT("blue, I think"))
    refused, _ = await shown_to(ERR(400, "image input is not supported"), TXT("I cannot see it"))

    assert (guessed.ok, guessed.is_blind) == (False, True)
    assert refused == ImageProbe(ok=False, detail="the endpoint refuses them", is_blind=True)


async def test_an_error_of_another_kind_says_nothing_about_images() -> None:
    look, _ = await shown_to(ERR(401, "no such key"))

    assert (look.ok, look.is_blind) == (False, False)
