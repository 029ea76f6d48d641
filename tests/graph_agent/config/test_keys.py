import pytest

from graph_agent.config.settings import SECRET_KEYS, known_keys, suggest_key


def test_keys_are_dotted_and_leave_out_what_no_file_sets() -> None:
    keys = known_keys()

    assert {"model.name", "policy.deny", "mode", "max_steps"} <= set(keys)
    assert {"database", "origins", "model"} & set(keys) == set()
    assert set(SECRET_KEYS) <= set(keys)


@pytest.mark.parametrize(
    ("written", "meant"), [("model.nam", "model.name"), ("base_url", "model.base_url"), ("max_step", "max_steps")]
)
def test_a_key_written_wrong_is_recognised(written: str, meant: str) -> None:
    assert suggest_key(written) == f"Did you mean {meant!r}?"


def test_a_key_like_none_is_answered_with_where_all_are_listed() -> None:
    assert suggest_key("zzz") == "`graph-agent config show` lists all there are."


def test_a_table_written_as_a_key_is_told_as_one() -> None:
    assert suggest_key("model") == "It is a table: write a line [model], and its keys below that."
