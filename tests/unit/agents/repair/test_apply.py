"""Writing to the user's tree: all or nothing, whatever happens."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from agents.api.errors import InvalidTask
from agents.repair import apply
from agents.repair.apply import apply_changes, undo_unfinished
from agents.repair.tree_state import TreeState

CHANGES = {
    "a.py": ("a = 1\n", "a = 2\n"),
    "b.py": ("b = 1\n", "b = 2\n"),
    "new/tests/c.py": (None, "c = 1\n"),
    "old.py": ("old = 1\n", None),
}


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    for path, (old, _) in CHANGES.items():
        if old is not None:
            (root / path).write_text(old)
    (root / "a.py").chmod(0o755)
    return root


def test_all_changes_are_written_and_nothing_else_is_left(tree, files):
    apply_changes(tree, CHANGES, TreeState.of(tree))
    expected = {path: new.encode() for path, (_, new) in CHANGES.items() if new is not None}
    assert files(tree) == expected
    assert (tree / "a.py").stat().st_mode & 0o777 == 0o755
    assert not (tree / ".pravaha").exists()


def test_an_existing_folder_of_the_project_stays(tree):
    (tree / ".pravaha" / "agents").mkdir(parents=True)
    apply_changes(tree, CHANGES, TreeState.of(tree))
    assert [one.name for one in (tree / ".pravaha").iterdir()] == ["agents"]


@pytest.mark.parametrize("change", ["edited", "added", "removed", "mode"])
def test_a_tree_that_changed_meanwhile_is_left_alone(tree, files, change):
    state = TreeState.of(tree)
    if change == "edited":
        (tree / "b.py").write_text("b = 3\n")
    elif change == "added":
        (tree / "z.py").write_text("")
    elif change == "removed":
        (tree / "old.py").unlink()
    else:
        (tree / "b.py").chmod(0o700)
    before = files(tree)
    with pytest.raises(InvalidTask, match="changed since the repair began"):
        apply_changes(tree, CHANGES, state)
    assert files(tree) == before


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_error_in_the_middle_puts_everything_back(tree, files, monkeypatch, failing):
    state, before = TreeState.of(tree), files(tree)
    calls = []
    replace = os.replace

    def fails(source, target):
        calls.append(target)
        if len(calls) == failing:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(apply.os, "replace", fails)
    with pytest.raises(OSError, match="No space"):
        apply_changes(tree, CHANGES, state)
    assert files(tree) == before
    assert not (tree / ".pravaha").exists()
    assert not (tree / "new").exists()


def killed_while_applying(tree: Path, after: int) -> None:
    """Apply in a process that kills itself after so many files."""
    script = textwrap.dedent(
        f"""
        import os, signal
        from pathlib import Path
        from agents.repair import apply
        from agents.repair.tree_state import TreeState

        put, done = apply._put, []

        def dies(*given):
            if len(done) == {after}:
                os.kill(os.getpid(), signal.SIGKILL)
            put(*given)
            done.append(given)

        apply._put = dies
        tree = Path({str(tree)!r})
        apply.apply_changes(tree, {CHANGES!r}, TreeState.of(tree))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[4], check=False
    )
    assert done.returncode == -9


@pytest.mark.parametrize("after", [0, 2, 3])
def test_an_apply_that_was_killed_is_taken_back(tree, files, after):
    before = files(tree)
    killed_while_applying(tree, after)
    assert undo_unfinished(tree)
    assert {path: data for path, data in files(tree).items() if ".pravaha" not in path} == before
    assert not (tree / ".pravaha" / "repair-apply").exists()
    assert not undo_unfinished(tree)
    apply_changes(tree, CHANGES, TreeState.of(tree))
    assert (tree / "a.py").read_text() == "a = 2\n"


def test_what_a_person_changed_after_the_kill_is_not_overwritten(tree):
    killed_while_applying(tree, 1)
    (tree / "a.py").write_text("mine\n")
    with pytest.raises(InvalidTask, match=r"a\.py has changed since"):
        undo_unfinished(tree)
    assert (tree / "a.py").read_text() == "mine\n"


def test_two_repairs_are_not_applied_at_once(tree, monkeypatch):
    state = TreeState.of(tree)
    (tree / ".pravaha" / "repair-apply").mkdir(parents=True)
    monkeypatch.setattr(apply, "undo_unfinished", lambda root: False)
    with pytest.raises(InvalidTask, match="Another repair"):
        apply_changes(tree, CHANGES, state)


def test_links_are_not_written_through(tree, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tree / "linked").symlink_to(outside)
    with pytest.raises(InvalidTask, match="symbolic link"):
        apply_changes(tree, {"linked/x.py": (None, "x\n")}, TreeState.of(tree))
    assert not list(outside.iterdir())
