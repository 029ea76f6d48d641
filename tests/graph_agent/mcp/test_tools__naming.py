import re

from hypothesis import given
from hypothesis import strategies as st

from graph_agent.mcp.tools import ambiguous_servers, mcp_tool_name, offered_name

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}")


def test_an_ordinary_name_is_offered_as_it_is() -> None:
    assert offered_name("github", "get_issue", ()) == "mcp__github__get_issue"


def test_what_providers_refuse_is_replaced_and_what_is_too_long_is_cut_to_a_name_of_its_own() -> None:
    server, tool = "customer.data platform", "synchronize-all-customer-data-across-multiple-systems-and-regions"

    assert offered_name(server, tool, ()) == "mcp__customer_data_platform__synchronize-all-customer-d_12f56126"
    assert mcp_tool_name(server, tool) == f"mcp__{server}__{tool}"


def test_a_name_that_is_taken_gets_a_mark() -> None:
    first = offered_name("s", "a b", ())

    assert (first, offered_name("s", "a.b", {first})[:-8]) == ("mcp__s__a_b", "mcp__s__a_b_")


@given(st.lists(st.tuples(st.text(max_size=90), st.text(max_size=90)), unique=True, max_size=8))
def test_whatever_servers_call_their_tools_every_offered_name_is_accepted_and_no_two_are_alike(
    pairs: list[tuple[str, str]],
) -> None:
    names: list[str] = []
    for server, tool in pairs:
        names.append(offered_name(server, tool, names))

    assert all(_ACCEPTED.fullmatch(name) for name in names)
    assert len(set(names)) == len({mcp_tool_name(server, tool) for server, tool in pairs})


def test_servers_whose_tools_could_be_taken_for_those_of_another_are_marked() -> None:
    assert ambiguous_servers(["a", "a__b", "ab", "a b", "a_b", "c"]) == {"a__b", "a_b"}


def test_marked_names_tell_apart_what_is_spelled_alike() -> None:
    names = {offered_name("a", "b__c", ()), offered_name("a__b", "c", (), is_ambiguous=True)}

    assert len(names) == 2
