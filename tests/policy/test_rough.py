from policy.rough import rough_commands


def test_whatever_could_be_a_command_is_guessed_with_and_without_its_quotes() -> None:
    found = {command.text for command in rough_commands("a 'b c' && $(rm \"x\nls")}

    assert {"a b c", "b c", "rm x", "ls"} <= found
