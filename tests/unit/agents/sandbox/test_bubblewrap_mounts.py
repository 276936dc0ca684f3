"""The mounts of bubblewrap, as its command line: links on the way to an environment are made there, too."""

from pathlib import Path

from agents.sandbox.bubblewrap import BubblewrapSandbox
from agents.sandbox.policy import SandboxPolicy
from agents.sandbox.sandbox import Command
from agents.sandbox.visible_paths import links_to


def test_an_environment_behind_links_is_mounted_with_its_links(tmp_path):
    root, place = tmp_path / "project", tmp_path / "kept" / "env-1"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").write_text("")
    root.mkdir()
    (tmp_path / "current").symlink_to(place)
    (root / ".venv").symlink_to(tmp_path / "current")
    command = Command(["./.venv/bin/python"], root)
    policy = SandboxPolicy(readable=(tmp_path / "current",), writable=(root,))
    links = {*command.links(), *links_to(str(tmp_path / "current"))}
    assert links == {root / ".venv", tmp_path / "current"}
    sandbox = BubblewrapSandbox("bwrap", landlock_abi=0)
    words = sandbox._mounts(policy.checked(), [Path("/usr")], tmp_path / "scratch", links)
    text = " ".join(words)
    assert f"--ro-bind {place} {place}" in text
    assert f"--symlink {place} {tmp_path / 'current'}" in text
    assert f"--bind {root} {root}" in text
    # This one lies in the project, which is mounted whole.
    assert f"{root / '.venv'}" not in text


def test_programs_of_an_environment_come_first_and_empty_variables_are_left_out(tmp_path):
    command = Command(["x"], tmp_path, {"VIRTUAL_ENV": ""}, programs=(Path("/env/bin"),))
    found = command.variables({"PATH": "/usr/bin", "VIRTUAL_ENV": "/own", "HOME": "/h"})
    assert found == {"PATH": "/env/bin:/usr/bin", "HOME": "/h"}
