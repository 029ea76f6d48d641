from pathlib import Path

from graph_agent.toolbox.places import Setting, path_fact
from policy import PathFact, PolicySettings
from tools.targets import PathTarget


def test_a_path_is_told_with_where_it_leads_and_whose_it_is(tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    (ws / "link").symlink_to("own")
    setting = Setting(ws / "w", PolicySettings(reserved=(ws / "own",)))

    fact = path_fact(PathTarget("link/x"), setting, base=ws)

    assert fact == PathFact("link/x", ws / "own/x", "read", inside=False, reserved=True)


def test_a_further_folder_counts_as_inside_and_relative_paths_start_at_the_workspace_all_the_same(
    tmp_path: Path,
) -> None:
    root = tmp_path.resolve()
    (root / "lib").mkdir()
    setting = Setting(root / "w", PolicySettings(), (root / "lib",))

    given = (str(root / "lib" / "x"), "../lib/x", "../lib-evil/x", "x")
    assert [path_fact(PathTarget(text), setting).inside for text in given] == [True, True, False, True]
