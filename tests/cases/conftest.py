from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cases.bench import Bench, SetUp
from tests.fakes.openai_server import FakeOpenAI, Reply


@pytest.fixture
def set_up(tmp_path: Path) -> Iterator[SetUp]:
    with ExitStack() as opened:

        def one(
            *replies: Reply, env: Mapping[str, str] | None = None, strict: bool = True, **options: Any
        ) -> Bench:
            server = opened.enter_context(FakeOpenAI(replies, strict=strict, **options))
            return Bench(tmp_path, server, env or {})

        yield one
