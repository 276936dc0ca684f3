"""Specification files: fields, search order, permissions of project files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import Cluster
from agents.api.errors import InvalidSpec, UnknownAgent
from agents.outputs.answer import Answer
from agents.outputs.findings import Findings
from agents.outputs.verdict import Verdict
from agents.plugins.registry import Registry, load_registry
from agents.roster.roster import load_roster
from agents.specs.spec_file import parse_spec
from agents.tools.builtin import TOOLS
from tests.unit.agents.roster_cases.case import emptiness

HEAD = "name: mine\ndescription: Mine.\ncategory: audit\noutput_schema: Findings\n"


def text(more: str = "", card: str = "You check.") -> str:
    return f"---\n{HEAD}{more}---\n{card}\n"


def test_the_fields_of_the_convention_are_read(tmp_path):
    spec = parse_spec(
        text("tools: [read, shell]\ndisallowedTools: [shell]\npermissionMode: deny\nmaxTurns: 3\n"),
        tmp_path / "mine.md",
    )
    assert (spec.key, spec.tools, spec.permission_mode, spec.max_turns) == (
        "mine",
        ("read",),
        "deny",
        3,
    )


def test_place_and_defaults_say_what_a_file_leaves_out(tmp_path):
    path = tmp_path / "security" / "door_check.md"
    spec = parse_spec("---\ndescription: Checks doors.\n---\nYou check doors.\n", path)
    assert (spec.key, spec.category, spec.output_schema) == ("door_check", "security", "Findings")
    with pytest.raises(InvalidSpec, match="category: field required"):
        parse_spec("---\ndescription: Checks doors.\n---\nYou check doors.\n", tmp_path / "a.md")


async def test_an_agent_without_a_procedure_says_that_it_needs_a_model(tmp_path):
    head = "---\ndescription: Mine.\ncategory: audit\noutput_schema: Answer\n"
    write(tmp_path, "mine.md", f"{head}---\nYou answer.\n")
    registry = Registry(outputs=load_registry().outputs)
    roster = load_roster(registry, user_folder=tmp_path)
    result = await Cluster(registry=registry, roster=roster).run("mine", task="Why?")
    assert result.output == Answer(cannot_do="mine needs a model.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must begin with front-matter"),
        (text("colour: red\n"), "there is no field colour"),
        (text("hooks: {}\n"), "there is no field hooks"),
        (text("skills: [a.md]\n"), "there is no field skills"),
        (text("model: another\n"), "model: input should be 'inherit'"),
        (text("isolation: copy\n"), "isolation: input should be 'none'"),
        (text("maxTurns: 0\n"), "maxTurns"),
        (text("budget: {tokens: -1}\n"), "budget.tokens"),
        (text(card=""), "role card after the front-matter is empty"),
        (text(card="x" * 481), "481 characters"),
        (text("sampling: [\n"), "not YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(content, message):
    with pytest.raises(InvalidSpec, match=message) as error:
        parse_spec(content, "mine.md")
    assert str(error.value).startswith("mine.md: ")


@given(st.text(max_size=300))
def test_any_text_is_a_specification_or_refused(content):
    with pytest.raises(InvalidSpec):
        parse_spec(f"---\n{content}", "x.md")


def write(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)


@pytest.fixture
def registry():
    loaded = load_registry()
    return Registry(outputs=loaded.outputs, tools={tool.name: tool for tool in TOOLS})


def test_later_folders_replace_earlier_ones(registry, tmp_path):
    write(tmp_path / "user", "mine.md", text(card="First."))
    write(tmp_path / "project" / ".pravaha" / "agents", "mine.md", text(card="Second."))
    roster = load_roster(registry, user_folder=tmp_path / "user", project=tmp_path / "project")
    assert roster.get("mine").card == "Second."


@pytest.mark.parametrize(
    ("users", "projects"),
    [(None, "tools: [write]\n"), ("permissionMode: ask\n", "permissionMode: auto\n")],
)
def test_a_project_may_not_widen_permissions(users, projects, registry, tmp_path):
    folders = {"user_folder": tmp_path / "user", "project": tmp_path}
    if users:
        write(tmp_path / "user", "mine.md", text(users))
    write(tmp_path / ".pravaha" / "agents", "mine.md", text(projects, card="The project's."))
    refused = load_roster(registry, **folders)
    assert [spec.card for spec in refused] == (["You check."] if users else [])
    assert "may not widen permissions" in refused.problems[0]
    trusted = load_roster(registry, **folders, trust_project=True)
    assert trusted.get("mine").card == "The project's."


def test_a_specification_only_tightens_the_mode_of_a_run(registry, tmp_path):
    write(tmp_path, "mine.md", text())
    assert load_roster(registry, user_folder=tmp_path).get("mine").permission_mode == "auto"


def test_what_does_not_exist_is_named(registry, tmp_path):
    write(tmp_path, "a.md", text("tools: [telescope]\n"))
    write(tmp_path, "b.md", text("detectors: [sixth_sense]\n"))
    write(tmp_path, "c.md", text("sampling: {heat: 1}\n"))
    write(tmp_path, "d.md", text("checks: music\n"))
    write(tmp_path, "e.md", text("checks: text\n").replace("Findings", "Lesson"))
    roster = load_roster(registry, user_folder=tmp_path)
    assert [problem.split(": ", 1)[1] for problem in roster.problems] == [
        "there is no tool telescope.",
        "there is no detector sixth_sense.",
        "there is no sampling parameter heat.",
        "there is no kind of output music.",
        "checks needs an output schema with findings; Lesson has none.",
    ]
    with pytest.raises(UnknownAgent, match="no agent 'mine'"):
        roster.get("mine")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (Findings(), "returned nothing"),
        (Answer(), "returned nothing"),
        (Verdict(), "returned nothing"),
        (Answer(cannot_do="It needs a model."), "could not do its task"),
        (None, "did not finish"),
    ],
)
async def test_an_agent_that_returns_nothing_without_a_model_is_rejected(output, reason, tmp_path):
    """What every agent of the roster is checked with on its seeded input can fail."""

    async def hollow(task, context):
        if output is None:
            raise RuntimeError("a bug")
        return output

    write(tmp_path, "mine.md", text())
    registry = Registry(outputs=load_registry().outputs, procedures={"mine": hollow})
    roster = load_roster(registry, user_folder=tmp_path)
    result = await Cluster(registry=registry, roster=roster).run("mine")
    assert reason in emptiness(result)
