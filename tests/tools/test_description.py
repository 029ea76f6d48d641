from tools.description import ToolDescription, ToolExample


def test_every_part_of_a_description_is_rendered() -> None:
    description = ToolDescription(
        short="Finds.",
        long="In files.",
        usage_notes=("narrow",),
        examples=(ToolExample({"pattern": "x"}, "one"), ToolExample({})),
        important=("no globs",),
    )

    assert description.render() == (
        'Finds.\nIn files.\nNotes:\n- narrow\nImportant:\n- no globs\nExamples:\n- {"pattern": "x"} one\n- {}'
    )


def test_a_short_description_is_rendered_alone() -> None:
    assert ToolDescription("Finds.").render() == "Finds."
