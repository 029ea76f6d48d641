import pytest

from policy.rules import globs_overlap


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        ("/w/.en?", "/w/.env", True),
        ("/w/*", "/w/.env", True),
        ("/w/*.py", "/w/.env", False),
        ("/w/*", "/w/secrets/**", False),
        ("/w/*/a", "/w/secrets/**", True),
        ("/w/**", "/w/a/b", True),
        ("/w/[a-c]b", "/w/xb", True),
        ("/w/?", "/w/", False),
        ("x" * 400, "y" * 400, True),
    ],
)
def test_patterns_meet_where_one_path_could_match_both(one: str, other: str, meets: bool) -> None:
    assert (globs_overlap(one, other), globs_overlap(other, one)) == (meets, meets)


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        ("/w/*", "/w/.env", False),
        ("/w/?env", "/w/.env", False),
        ("/w/[.]env", "/w/.env", False),
        ("/w/*", "/w/**/.env", False),
        ("/w/.*", "/w/.env", True),
        ("/w/*.env", "/w/a.env", True),
        ("/w/*/.env", "/w/**/.env", True),
        ("/w/*", "/w/*", True),
    ],
)
def test_wild_signs_of_a_shell_stand_for_no_name_that_begins_with_a_dot(one: str, other: str, meets: bool) -> None:
    assert globs_overlap(one, other, hides_dots=True) is meets
