import jsonschema
import pytest

from graph_agent.model.local.actions import actions_for, chosen, explained, schema_of

ALL = frozenset(("ls", "glob", "grep", "read_file", "write_file", "bash", "web_fetch"))


def test_only_what_the_tools_on_offer_can_do_is_offered() -> None:
    names = {
        tools: [action.name for action in actions_for(tools)] for tools in (frozenset(("ls", "read_file")), ALL)
    }

    assert names == {
        frozenset(("ls", "read_file")): ["ls", "read_file", "reply"],
        ALL: ["ls", "glob", "grep", "read_file", "write_file", "change_file", "bash", "reply"],
    }


@pytest.mark.parametrize(
    ("said", "fits"),
    [
        ({"tool": "read_file", "file_path": "a"}, True),
        ({"tool": "reply", "text": ""}, True),
        ({"tool": "read_file"}, False),
        ({"tool": "read_file", "file_path": 1}, False),
        ({"tool": "read_file", "file_path": "a", "more": "b"}, False),
        ({"tool": "web_fetch", "url": "x"}, False),
        ({"tool": "ls", "file_path": "a"}, False),
    ],
)
def test_the_schema_takes_one_whole_action_and_nothing_else(said: dict[str, object], fits: bool) -> None:
    validator = jsonschema.Draft202012Validator(schema_of(actions_for(ALL)))

    assert validator.is_valid(said) is fits


def test_what_was_chosen_is_read_and_what_is_no_action_is_none() -> None:
    actions = actions_for(ALL)
    said = ['{"tool": "ls", "path": "."}', '{"tool": "ls"}', '{"tool": "no"}', "[1]", '{"tool": "ls", "pa', "7"]

    assert [chosen(text, actions) for text in said] == [("ls", {"path": "."}), None, None, None, None, None]


def test_the_explanation_is_short_and_its_examples_are_on_offer() -> None:
    few, all_of_them = explained(actions_for(frozenset(("ls",)))), explained(actions_for(ALL))

    assert (len(all_of_them) < 1_500, "parse_args" in all_of_them, "parse_args" in few) == (True, True, False)
