from graph_agent.calls import args_digest


def test_the_digest_does_not_depend_on_the_order_of_the_arguments() -> None:
    assert args_digest("c", "bash", 1, {"a": 1, "b": 2}) == args_digest("c", "bash", 1, {"b": 2, "a": 1})


def test_any_difference_in_what_was_shown_gives_another_digest() -> None:
    digests = {
        args_digest("c", "bash", 1, {"command": "ls"}),
        args_digest("d", "bash", 1, {"command": "ls"}),
        args_digest("c", "shell", 1, {"command": "ls"}),
        args_digest("c", "bash", 2, {"command": "ls"}),
        args_digest("c", "bash", 1, {"command": "ls "}),
    }

    assert len(digests) == 5
