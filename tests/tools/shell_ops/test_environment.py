from tools.shell_ops.environment import INTERACTION_OFF, child_environment


def test_only_listed_variables_are_inherited_and_nothing_asks() -> None:
    source = {
        "PATH": "/bin",
        "HOME": "/home/u",
        "LC_ALL": "C",
        "OPENAI_API_KEY": "sk-secret",
        "BASH_ENV": "/tmp/evil",
        "LD_PRELOAD": "/tmp/evil.so",
        "PAGER": "less",
        "PS4": "$(id)",
    }

    assert child_environment(source) == {"PATH": "/bin", "HOME": "/home/u", "LC_ALL": "C", **INTERACTION_OFF}


def test_there_is_always_a_path() -> None:
    assert child_environment({})["PATH"] == "/usr/local/bin:/usr/bin:/bin"
