import io

from graph_agent.cli.render.screen import make_console


def test_markup_emoji_codes_and_numbers_are_printed_as_they_are() -> None:
    stream = io.StringIO()

    make_console(stream).print("[red]x[/] :smile: 42")

    assert stream.getvalue() == "[red]x[/] :smile: 42\n"
