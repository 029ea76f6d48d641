import pytest

from graph_agent.errors import UsageError
from graph_agent.model.single_model import SingleModel


async def test_there_is_nothing_to_choose_and_who_tries_is_told_why() -> None:
    model = SingleModel("it stands alone.")

    assert (model.name, model.chosen, await model.names()) == ("", {}, ())
    with pytest.raises(UsageError, match=r"^'other' cannot be asked: it stands alone\.$"):
        await model.switch("other")
