from graph_agent.cli.views.format import format_todo


def test_each_step_stands_on_a_line_of_its_own_with_how_far_it_is() -> None:
    plan = [
        {"content": "look", "status": "completed"},
        {"content": "act\x1b[2J", "status": "in_progress"},
        {"content": "tell", "status": "pending"},
    ]

    assert format_todo(plan) == ["[x] look", "[>] act\\x1b[2J", "[ ] tell"]
