from pathlib import PurePath

import pytest

from policy import filters_files, may_read, parse_rules


@pytest.mark.parametrize(
    ("deny", "path", "expected"),
    [
        (["read_file(secret/**)"], "/ws/secret/key", False),
        (["read(secret/**)"], "/ws/secret/key", False),
        (["read_file(**/.env)"], "/ws/deep/.env", False),
        (["read_file(secret/**)"], "/ws/open/key", True),
        (["read_file"], "/ws/open", True),
        (["write_file(**)"], "/ws/open", True),
        (["read_file(~/keys/**)"], "/home/u/keys/k", False),
    ],
)
def test_a_denied_path_is_hidden_from_searches(deny: list[str], path: str, expected: bool) -> None:
    rules = parse_rules(deny=deny)

    assert may_read(PurePath(path), workspace=PurePath("/ws"), rules=rules, home=PurePath("/home/u")) is expected


@pytest.mark.parametrize(
    ("deny", "expected"),
    [([], False), (["read_file"], False), (["write_file(**)"], False), (["bash(ls:*)", "read(a)"], True)],
)
def test_only_a_deny_of_reading_paths_can_hide_files(deny: list[str], expected: bool) -> None:
    assert filters_files(parse_rules(deny=deny)) is expected
