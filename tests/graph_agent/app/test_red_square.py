from graph_agent.app.red_square import red_square
from tools.file_ops.images import media_type_of
from tools.file_ops.whole_images import is_whole_image


def test_the_square_is_a_whole_png_of_a_size_that_models_take() -> None:
    picture = red_square()

    assert (media_type_of(picture), is_whole_image(picture, "image/png")) == ("image/png", True)
    assert int.from_bytes(picture[16:20]) == int.from_bytes(picture[20:24]) == 32
