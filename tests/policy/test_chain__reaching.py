from pathlib import PurePath

import pytest

from policy import CallFacts, PolicySettings, host_access, parse_rules


@pytest.mark.parametrize(
    ("allow", "deny", "mode", "reach"),
    [
        ([], [], "default", (False, False, False)),
        ([], [], "bypassPermissions", (False, True, False)),
        ([], [], "dontAsk", (True, False, False)),
        (["web_fetch(h:8080)"], [], "default", (False, True, True)),
        (["web_fetch(h)"], [], "default", (False, False, False)),
        (["web_fetch(other:8080)"], [], "default", (False, False, False)),
        (["web_fetch"], [], "default", (False, True, False)),
        (["web_fetch(*:*)"], [], "default", (False, True, False)),
        (["web_fetch(h:8080)"], ["web_fetch(h)"], "bypassPermissions", (True, False, True)),
    ],
)
def test_a_host_is_denied_allowed_or_named(
    allow: list[str], deny: list[str], mode: str, reach: tuple[bool, bool, bool]
) -> None:
    facts = CallFacts("web_fetch", mode, "medium", "readonly", PurePath("/w"), plans=True, hosts=("h:8080",))

    assert host_access(facts, PolicySettings(rules=parse_rules(allow=allow, deny=deny))) == reach
