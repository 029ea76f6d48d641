"""Links that are swapped while calls are prepared and run: nothing outside is ever read or written."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.toolbox_world import World

_OUTSIDE = "outside-secret"
_SWAPS = 1_000


class _Swapper:
    """Makes one name a folder of the workspace, and a link to one outside, in turn and as fast as it can."""

    def __init__(self, name: Path, inside: Path, outside: Path) -> None:
        self._name, self._inside, self._outside = name, inside, outside
        self._ended = threading.Event()
        self.swaps = 0

    def swap(self) -> None:
        """Until it is ended."""
        draft = self._name.with_name("draft")
        while not self._ended.is_set():
            target = self._outside if self.swaps % 2 else self._inside
            draft.symlink_to(target)
            os.replace(draft, self._name)  # noqa: PTH105 - what a swap is
            self.swaps += 1

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Swap while the block runs."""
        thread = threading.Thread(target=self.swap)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["d", "d/data"])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"file_path": "d/data"}),
        ("write_file", {"file_path": "d/data", "content": "mine"}),
        ("write_file", {"file_path": "d/new", "content": "mine"}),
        ("edit_file", {"file_path": "d/data", "old_string": "side", "new_string": "mine"}),
        ("ls", {"path": "d"}),
        ("glob", {"path": "d", "pattern": "*"}),
        ("glob", {"pattern": "d/*"}),
        ("grep", {"path": "d", "pattern": "side"}),
        ("grep", {"pattern": "side"}),
    ],
)
async def test_no_swap_of_a_link_lets_a_call_leave_the_workspace(
    tool: str, arguments: dict[str, Any], what: str, tmp_path: Path
) -> None:
    folder = tmp_path.resolve()
    world = World(folder)
    outside, inside = folder / "out", world.workspace / "real"
    for place, text in ((outside, _OUTSIDE), (inside, "in-side")):
        place.mkdir()
        (place / "data").write_text(text)
    (outside / "name-of-a-secret").write_text("")
    if what == "d":
        swapper = _Swapper(world.workspace / "d", inside, outside)
    else:
        (world.workspace / "d").mkdir()
        swapper = _Swapper(world.workspace / "d" / "data", inside / "data", outside / "data")
    texts: list[str] = []

    with swapper.at_work():
        while swapper.swaps < _SWAPS:
            plan = await world.plan(tool, "acceptEdits", **arguments)
            if plan.verdict == "allow":
                outcome = await world.run_as(plan)
                texts.append(f"{outcome.output} {outcome.error}")

    leaked = [text for text in texts if _OUTSIDE in text or "name-of-a-secret" in text]
    assert (leaked, len(texts) > 0) == ([], True)
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"data": _OUTSIDE, "name-of-a-secret": ""}
