import json
from datetime import date
from typing import Any

import pytest

from graph_agent.storage.json_text import json_text, storable


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True]}, "ü 漢", []])
def test_plain_values_come_back_from_their_text(value: Any) -> None:
    assert json.loads(json_text(value)) == value


def test_odd_values_become_text_and_odd_keys_are_left_out() -> None:
    odd = {
        "when": date(2026, 1, 1),
        ("a", "b"): 1,
        3: "three",
        "bad": "\ud800",
        "no": float("nan"),
        "all": float("-inf"),
    }

    text = json_text(odd)

    assert json.loads(text) == {"when": "2026-01-01", "3": "three", "bad": "?", "no": "NaN", "all": "-Infinity"}


def test_lone_surrogates_are_replaced_and_all_else_stays() -> None:
    assert storable("a\ud800ü\x00") == "a?ü\x00"
