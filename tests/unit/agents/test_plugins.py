"""Discovery of plugins by their entry points; the example plugin."""

import sys
from pathlib import Path

import pytest

from agents import Cluster
from agents.plugins.registry import BUILTIN, load_registry
from agents.roster.roster import load_roster

EXAMPLE = Path(__file__).parents[3] / "examples" / "pravaha-plugin-todo"


def install(folder, name, module, monkeypatch):
    """A distribution with one entry point, as pip would leave it."""
    info = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[pravaha]\n{name} = {module}\n")
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture(autouse=True)
def _forget_modules():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if "plugin" in name:
            del sys.modules[name]


async def test_the_example_plugin_adds_an_agent(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    install(tmp_path / "site", "todo", "pravaha_plugin_todo", monkeypatch)
    registry = load_registry()
    assert [one.name for one in registry.plugins] == [BUILTIN, "todo"]
    source = tmp_path / "a.py"
    source.write_text("x = 1  # TODO: remove\n")
    cluster = Cluster(registry=registry, roster=load_roster(registry))
    result = await cluster.run("todo_audit", [source])
    assert [one.message for one in result.findings] == ["TODO: remove"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("pravaha_api_version = 99", "version 99 of the plugin interface; this is 1"),
        ("", "version None"),
        (
            "from agents.plugins.hooks import hookimpl\npravaha_api_version = 1\n"
            "@hookimpl\ndef pravaha_detectors(): return 1 / 0\n",
            "ZeroDivisionError",
        ),
        (
            "from agents.plugins.hooks import hookimpl\npravaha_api_version = 1\n"
            "@hookimpl\ndef pravaha_colours(): return []\n",
            "PluginValidationError",
        ),
    ],
)
def test_a_broken_plugin_is_listed_and_the_others_work(source, message, tmp_path, monkeypatch):
    site = tmp_path / "site"
    install(site, "broken", "broken_plugin", monkeypatch)
    (site / "broken_plugin.py").write_text(source)
    registry = load_registry()
    (broken,) = [one for one in registry.plugins if one.name == "broken"]
    assert message in broken.error
    assert "Findings" in registry.outputs
    assert [one.name for one in load_registry(enabled=[]).plugins] == [BUILTIN]
