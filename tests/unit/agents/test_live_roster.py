"""Specification files that change while a process runs: new runs follow them, running ones do not."""

import os

from agents import Cluster
from agents.api.events import RunEventType
from agents.plugins.registry import Registry
from agents.roster.live_roster import LiveRoster
from agents.roster.roster import load_roster

SPEC = (
    "---\nname: {key}\ndescription: {text}\ncategory: audit\noutput_schema: Findings\n"
    "detectors: [bad_words]\n---\nYou check.\n"
)


def write(folder, key, text):
    """A specification whose time of change differs from the one before."""
    path = folder / f"{key}.md"
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(SPEC.format(key=key, text=text))
    os.utime(path, ns=(before + 10**9, before + 10**9))


def live(registry, folder):
    loads = []

    def load():
        loads.append(1)
        only = Registry(
            detectors=registry.detectors, outputs=registry.outputs, agent_folders=[folder]
        )
        return load_roster(only)

    return LiveRoster(load, [folder, folder / "missing"]), loads


async def test_a_changed_file_holds_for_new_runs_only(registry, tmp_path):
    write(tmp_path, "mine", "First.")
    roster, _ = live(registry, tmp_path)
    cluster = Cluster(registry=registry, roster=roster)
    seen = []

    def change(run):
        write(tmp_path, "mine", "Second.")
        assert cluster.roster.get("mine").description == "Second."
        run.log.follow(
            lambda event: event.type is RunEventType.RUN_STATE and seen.append(run.spec.description)
        )

    await cluster.run("mine", on_start=change)
    assert set(seen) == {"First."}
    runs = []
    await cluster.run("mine", on_start=runs.append)
    assert runs[0].spec.description == "Second."


def test_files_are_read_again_only_if_one_changed(registry, tmp_path):
    write(tmp_path, "mine", "First.")
    roster, loads = live(registry, tmp_path)
    assert roster.current() is roster.current()
    assert len(loads) == 1
    write(tmp_path, "more", "Another.")
    assert "more" in roster.current().specs
    (tmp_path / "mine.md").unlink()
    assert "mine" not in roster.current().specs
    assert len(loads) == 3


def test_a_broken_file_is_logged_and_left_out(registry, tmp_path, caplog):
    write(tmp_path, "mine", "First.")
    roster, _ = live(registry, tmp_path)
    (tmp_path / "mine.md").write_text("nothing")
    assert "mine" not in roster.current().specs
    assert "mine.md: " in caplog.text
