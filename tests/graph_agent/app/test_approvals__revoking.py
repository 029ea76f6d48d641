import pytest

from graph_agent.app.approvals import revoke_grant
from graph_agent.app.reader import read_database
from graph_agent.errors import NothingYet, UnknownId
from tests.fakes.database_rows import Rows


async def test_a_grant_is_taken_back_once(rows: Rows) -> None:
    rows.grant("bash(ls)")
    rows.grant("bash(rm x)")

    revoked = await revoke_grant(rows.path, "2", by="cli pid 1")

    with read_database(rows.path) as reader:
        assert (revoked.rules, [grant.id for grant in reader.grants()]) == (("bash(rm x)",), [1])
    with pytest.raises(UnknownId, match="these stand: 1;"):
        await revoke_grant(rows.path, "2", by="cli pid 1")


@pytest.mark.parametrize("text", ["", "0", "x", "01", "1; DROP TABLE grants"])
async def test_an_id_that_no_grant_has_takes_nothing_back(rows: Rows, text: str) -> None:
    rows.grant("bash(ls)")

    with pytest.raises(UnknownId):
        await revoke_grant(rows.path, text, by="cli pid 1")


async def test_without_a_database_none_is_made(rows: Rows) -> None:
    nowhere = rows.path.with_name("none.db")

    with pytest.raises(NothingYet):
        await revoke_grant(nowhere, "1", by="cli pid 1")

    assert not nowhere.exists()
