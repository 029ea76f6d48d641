import re

from tests.architecture.checkout import ROOT

COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


def explained_targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))


def first_commands(readme: str) -> list[str]:
    block = COMMANDS.search(readme)
    return [line.partition("#")[0].strip() for line in block[1].splitlines()] if block else []


def test_help_explains_every_make_command() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert explained_targets(makefile) == targets(makefile)


def test_the_readme_begins_with_run_and_test() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert first_commands(readme) == ["make run", "make test"]


def test_ci_runs_the_checks_and_the_tests_of_the_readme() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")

    assert re.findall(r"^make \w+", script, re.MULTILINE) == ["make check", "make test"]


def test_a_make_command_without_explanation_is_noticed() -> None:
    makefile = "run: stamp ## open the chat\n\t@echo run\ntest: stamp\n\t@echo test\n"

    assert (targets(makefile), explained_targets(makefile)) == ({"run", "test"}, {"run"})
