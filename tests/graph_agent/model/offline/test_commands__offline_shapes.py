from typing import get_args

from graph_agent.model.offline.chinese import CHINESE
from graph_agent.model.offline.commands import SHAPES, Command, ReadFile, shape_of
from graph_agent.model.offline.english import ENGLISH
from graph_agent.model.offline.grammar import parse_one


def test_every_command_has_its_shape_and_documented_wordings_in_both_languages() -> None:
    commands = set(get_args(Command))
    documented = [
        {type(parse_one(example)) for wording in wordings for example in wording.examples}
        for wordings in (ENGLISH, CHINESE)
    ]

    assert ([shape.command for shape in SHAPES], documented) == (
        [shape_of(shape.command).command for shape in SHAPES],
        [commands, commands],
    )
    assert {shape.command for shape in SHAPES} == commands


def test_a_shape_is_told_in_the_language_of_the_user() -> None:
    shape = shape_of(ReadFile)

    assert [shape.told(chinese=False), shape.told(chinese=True)] == [
        "read FILE [lines 2-5]",
        "读取 文件 [第2到5行]",
    ]
