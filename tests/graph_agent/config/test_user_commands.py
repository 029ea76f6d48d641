import pytest

from graph_agent.config.user_commands import (
    UserCommand,
    command_name,
    expand_user_command,
    field_items,
    parse_user_command,
    split_front_matter,
)


def _saying(body: str) -> UserCommand:
    return UserCommand("x", "", "", body, "x.md")


def test_a_file_says_what_it_does_and_what_may_follow() -> None:
    text = '\ufeff---\r\ndescription: "Look  at it"\nargument-hint: FILE\nallowed-tools: bash(*)\n---\n\nRead $1.\n'

    made = parse_user_command("review", text, "/c/review.md")

    assert made == UserCommand("review", "Look at it", "FILE", "Read $1.", "/c/review.md")
    assert made.usage == "/review FILE"


@pytest.mark.parametrize(
    ("text", "does", "body"),
    [
        ("\nTidy up.\nThen rest.\n", "Tidy up.", "Tidy up.\nThen rest."),
        ("---\nno end of it\n", "---", "---\nno end of it"),
        ("---\n---\n", "", ""),
        ("---\n- list\n  nested: x\n# note: y\n---\nbody", "body", "body"),
        ("", "", ""),
        (f"{'x' * 101}", f"{'x' * 99}…", "x" * 101),
    ],
)
def test_without_a_head_its_first_line_tells_what_it_does(text: str, does: str, body: str) -> None:
    made = parse_user_command("x", text, "x.md")

    assert (made.does, made.body) == (does, body)


@pytest.mark.parametrize(
    ("body", "arguments", "message"),
    [
        ("Read $1, then $2.", "'a b.py' c", "Read a b.py, then c."),
        ("All: $ARGUMENTS", "one  'two'", "All: one  'two'"),
        ("$1 and $3", "one", "one and "),
        ("costs $10, $ARGUMENTSX, $0, $$", "x", "costs $10, $ARGUMENTSX, $0, $$\n\nx"),
        ("$1", "$2 it's", "$2"),
        ("no place", "for it", "no place\n\nfor it"),
        ("alone", "", "alone"),
    ],
)
def test_arguments_go_where_the_file_wants_them_and_are_never_filled_in_themselves(
    body: str, arguments: str, message: str
) -> None:
    assert expand_user_command(_saying(body), arguments) == message


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("review.md", "review"),
        ("git/tidy.md", "git:tidy"),
        ("grüße.md", "grüße"),
        ("a b.md", ""),
        ("x.txt", ""),
        (".md", ""),
        ("a/\x1b.md", ""),
    ],
)
def test_a_command_is_named_after_its_file_and_its_folders(path: str, name: str) -> None:
    assert command_name(path) == name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Just text.\n", ({}, "Just text.")),
        (
            "---\nname: a\ndescription: 'Does: it'\n---\n\nBody\n",
            ({"name": "a", "description": "Does: it"}, "Body"),
        ),
        ("\ufeff---\r\nDescription: x\r\n---\r\nBody\r\n", ({"description": "x"}, "Body")),
        (
            "---\ndescription: >-\n  When tests\n  fail.\n\n  Always.\nother: 1\n---\nB",
            ({"description": "When tests fail. Always.", "other": "1"}, "B"),
        ),
        ("---\ndescription: |\n  One\n---\n", ({"description": "One"}, "")),
        ("---\ndescription: begins\n  goes on\n---\n", ({"description": "begins goes on"}, "")),
        ("---\ntools:\n  - a\n  - b\n# note\nnonsense\n---\nB", ({"tools": "- a - b"}, "B")),
        ("---\nnever: closed\n", ({}, "---\nnever: closed")),
        ("---\n---\nB", ({}, "B")),
    ],
)
def test_a_head_is_told_apart_from_what_stands_below(text: str, found: tuple[dict[str, str], str]) -> None:
    assert split_front_matter(text) == found


@pytest.mark.parametrize("listed", ["a b, c-d", "[a b, 'c-d']", '- a b\n- "c-d"', "a b,, c-d,"])
def test_a_list_in_a_head_is_read_however_it_is_written(listed: str) -> None:
    fields, _ = split_front_matter(
        f"---\none: {listed}\n---\n" if listed[0] != "-" else f"---\none:\n{listed}\n---\n"
    )

    assert field_items(fields["one"]) == ("a b", "c-d")
