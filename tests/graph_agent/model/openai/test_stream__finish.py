import pytest

from graph_agent.model.openai.stream import broke_off, cut_by

LIMIT, FILTER = "the model's output limit", "the provider's content filter"


@pytest.mark.parametrize(
    ("reason", "limit"),
    [
        ("length", LIMIT),
        ("MAX_TOKENS", LIMIT),
        ("max_output_tokens", LIMIT),
        ("model_context_window_exceeded", LIMIT),
        ("content_filter", FILTER),
        ("contentFiltered", FILTER),
        ("SAFETY", FILTER),
        ("sensitive", FILTER),
        ("stop", ""),
        ("tool_calls", ""),
        ("eos", ""),
        ("", ""),
    ],
)
def test_a_reason_to_finish_says_what_cut_the_reply_off(reason: str, limit: str) -> None:
    assert cut_by(reason) == limit


def test_a_server_that_gave_up_says_so_in_its_reason() -> None:
    reasons = ["error", "abort", "insufficient_system_resource", "network_error", "stop", "length", ""]

    assert [reason for reason in reasons if broke_off(reason)] == reasons[:4]
