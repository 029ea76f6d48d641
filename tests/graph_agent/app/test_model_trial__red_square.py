from graph_agent.app.model_trial import red_square
from tools.file_ops.images import is_whole_image, media_type_of


def test_the_square_is_a_whole_png_of_a_size_that_models_take() -> None:
    picture = red_square()

    assert (media_type_of(picture), is_whole_image(picture, "image/png")) == ("image/png", True)
    assert int.from_bytes(picture[16:20]) == int.from_bytes(picture[20:24]) == 32
