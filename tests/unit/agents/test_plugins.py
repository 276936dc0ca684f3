"""Discovery of plugins by their entry points; the example plugin."""

import sys
from pathlib import Path

import pytest
import typer

from agents import Cluster
from agents.api.errors import InvalidSpec
from agents.guardrails.guardrails import Guardrails
from agents.plugins.guardrails import load_guardrails
from agents.plugins.registry import BUILTIN, load_registry
from agents.roster.roster import load_roster
from app.commands.plugins import doctor

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


REDUCER = """
from agents.outputs.answer import Answer
from agents.plugins.hooks import hookimpl

pravaha_api_version = 1

@hookimpl
def pravaha_reducers():
    return {"longest": lambda results: max((one.output for one in results.values()), key=lambda one: len(one.text)),
            "hopeless": lambda results: 1 / 0}
"""

PIPELINE = """
name: two
description: Two.
output: last
nodes:
  a: {agent: summarizer, document: "Short one. Short two. Short three."}
  b: {agent: summarizer, document: "This sentence is much longer. So is this much longer sentence here. And much longer is this one, too."}
  last: {reduce: NAME, needs: [a, b]}
"""


@pytest.mark.parametrize(
    ("reducer", "state", "said"),
    [
        ("longest", "ok", "much longer"),
        ("hopeless", "failed", "last: The reducer hopeless failed: ZeroDivisionError"),
    ],
)
async def test_a_plugin_adds_reducers(reducer, state, said, tmp_path, monkeypatch):
    site = tmp_path / "site"
    install(site, "joining", "joining_plugin", monkeypatch)
    (site / "joining_plugin.py").write_text(REDUCER)
    (tmp_path / "two.yaml").write_text(PIPELINE.replace("NAME", reducer))
    registry = load_registry()
    assert {"findings", "vote", "concatenate", "longest"} <= set(registry.reducers)
    cluster = Cluster(registry=registry, pipeline_folders=[tmp_path])
    result = await cluster.run_pipeline("two")
    assert result.state.value == state
    assert said in (result.error or result.result.output.text)


async def test_an_unknown_reducer_is_refused_before_the_start(tmp_path):
    (tmp_path / "two.yaml").write_text(PIPELINE.replace("NAME", "longest"))
    with pytest.raises(InvalidSpec, match=r"node last: there is no reducer 'longest'\."):
        await Cluster(pipeline_folders=[tmp_path]).run_pipeline("two")


GUARDRAIL = """
from agents.guardrails.detection import Kind
from agents.guardrails.recognizer import recognizer
from agents.plugins.hooks import hookimpl

pravaha_api_version = 1

def explode(text, start, end):
    raise RuntimeError("a bug")

@hookimpl
def pravaha_guardrails():
    word = lambda name, pattern, **more: recognizer(
        Kind.SECRET, name, pattern, alphabet="[a-z]", max_chars=9, **more)
    return {
        "codename": lambda policy: [word("kestrel", "kestrel")],
        "exploding": lambda policy: [word("explodes", "card", validate=explode)],
        "unmade": lambda policy: 1 / 0,
    }
"""


def test_a_plugins_guardrails_reach_chats_and_one_that_raises_is_left_out(
    tmp_path, monkeypatch, caplog, capsys
):
    site = tmp_path / "site"
    install(site, "words", "words_plugin", monkeypatch)
    (site / "words_plugin.py").write_text(GUARDRAIL)
    guardrails = Guardrails(recognizers=load_guardrails())
    text = "the card 4111 1111 1111 1111 of kestrel"
    assert guardrails.check_input(text).text == "the card [card removed] of [secret removed]"
    check = guardrails.output_check()
    assert check.feed(text) + check.finish() == "the card [card removed] of [secret removed]"
    assert set(guardrails.failures) == {"unmade", "exploding.explodes"}
    assert sum("exploding.explodes" in one.message for one in caplog.records) == 1

    with pytest.raises(typer.Exit):
        doctor()
    printed = capsys.readouterr().out
    assert "guardrail exploding.explodes raised RuntimeError: a bug" in printed
    assert "guardrail unmade raised ZeroDivisionError" in printed
    assert "guardrails: codename, exploding, unmade" in printed
    assert "reducers: findings, vote, concatenate, report" in printed


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
