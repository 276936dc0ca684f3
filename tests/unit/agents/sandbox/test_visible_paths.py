"""What sandboxed commands see beside their own folders."""

from pathlib import Path

import pytest

from agents.sandbox.visible_paths import base_environment, links_to, visible_paths


def test_links_on_the_way_to_a_path_are_found_in_order(tmp_path):
    (tmp_path / "real" / "bin").mkdir(parents=True)
    (tmp_path / "alias").symlink_to("real")
    (tmp_path / "other").symlink_to(tmp_path / "alias")
    (tmp_path / "real" / "bin" / "python").symlink_to("../bin/python3")
    top = tmp_path.resolve()
    assert links_to(str(top / "other" / "bin" / "python")) == [
        top / "other", top / "alias", top / "real" / "bin" / "python"
    ]  # fmt: skip


def test_a_circle_of_links_ends(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert len(links_to(str(tmp_path / "a"))) == 40


@pytest.mark.parametrize("profile", ["restricted", "developer"])
def test_no_folder_with_secrets_is_visible(profile):
    home = Path.home()
    private = [
        home,
        home / ".ssh",
        home / ".aws",
        home / ".config",
        Path("/etc"),
        Path("/root"),
        Path("/"),
    ]
    assert not set(visible_paths(profile, "full")) & set(private)


def test_of_the_callers_variables_only_those_of_toolchains_are_passed_on(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("LD_PRELOAD", "/evil.so")
    monkeypatch.setenv("GOROOT", "/usr/lib/go")
    restricted = base_environment("restricted", [Path("/usr")], tmp_path)
    developer = base_environment("developer", [Path("/usr")], tmp_path)
    for environment in (restricted, developer):
        assert not {"AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_PRELOAD"} & environment.keys()
    assert "GOROOT" not in restricted
    assert developer["GOROOT"] == "/usr/lib/go"


def test_folders_that_cannot_be_read_are_left_out_of_the_search_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", f".:relative:{tmp_path}:/usr/bin:/usr/bin")
    path = base_environment("restricted", [Path("/usr")], tmp_path)["PATH"].split(":")
    assert path.count("/usr/bin") == 1
    assert not {".", "relative", str(tmp_path)} & set(path)
