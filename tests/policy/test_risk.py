import pytest

from policy import DEFAULT_TOOL_RISK, DEFAULT_UNKNOWN_RISK, risk_of


def test_the_table_speaks_of_every_tool_in_words_that_exist() -> None:
    assert set(DEFAULT_TOOL_RISK.values()) == {"low", "medium", "high"}
    assert DEFAULT_UNKNOWN_RISK == "medium"


@pytest.mark.parametrize(
    ("tool", "declared", "is_own", "settings", "risk"),
    [
        ("bash", "low", True, {}, "high"),
        ("bash", "low", True, {"bash": "medium"}, "medium"),
        ("my_tool", "low", True, {}, "low"),
        ("my_tool", "high", True, {}, "high"),
        ("their_tool", "low", False, {}, "medium"),
        ("their_tool", "high", False, {}, "high"),
        ("their_tool", "high", False, {"their_tool": "low"}, "low"),
        ("read_file", "low", False, {}, "medium"),
        ("nobody", None, True, {}, "medium"),
        ("odd", "harmless", True, {}, "medium"),
    ],
)
def test_risk_comes_from_settings_then_table_then_declaration(
    tool: str, declared: str | None, is_own: bool, settings: dict[str, str], risk: str
) -> None:
    assert risk_of(tool, declared, is_own=is_own, settings=settings) == risk
