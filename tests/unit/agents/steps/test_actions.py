"""Actions and their argument values from the tools, the workspace and the observations."""

import pytest
from pydantic import BaseModel, ValidationError

from agents.memory.tool import memory_tool
from agents.steps.actions import MAX_VALUES, possible_actions
from agents.steps.bounded_schema import Bounds
from agents.steps.repeats import Repeats, canonical_call
from agents.tools.tool import Effect, Tool, ToolOutput
from agents.workspace.workspace import Workspace
from tests.fakes.step_tools import step_tools

FILES = Workspace.of_texts({"a.py": "1\n2\n3", "b.py": "x"})
TOOLS = {tool.name: tool for tool in step_tools(FILES)}


def actions(observed=None, repeats=None, workspace=FILES):
    found = possible_actions(
        TOOLS.values(), workspace, observed or {}, repeats or Repeats(), Bounds()
    )
    return {action.name: action for action in found}


def test_reading_tools_name_the_files_that_exist():
    read = actions()["read"]
    assert [one.name for one in read.arguments] == ["path", "start", "end"]
    assert read.arguments[0].values == ("a.py", "b.py")
    assert read.lines == {"a.py": 3, "b.py": 1}
    assert [one.is_line for one in read.arguments] == [False, True, True]


def test_an_optional_null_is_an_omitted_argument():
    end = actions()["read"].arguments[2]
    assert end.schema["type"] == "integer"
    assert not end.required


def test_writing_tools_may_name_new_files():
    assert actions()["edit"].arguments[0].values is None
    assert actions({"path": ("a.py",)})["edit"].arguments[0].values is None


def test_the_address_of_a_memory_is_no_file():
    found = possible_actions([memory_tool()], FILES, {"id": ("0" * 24,)}, Repeats(), Bounds())
    values = {one.name: one.values for one in found[0].arguments}
    assert values["path"] is None
    assert values["id"] == ("0" * 24,)


def test_observed_values_of_files_that_do_not_exist_are_not_offered_for_reading():
    read = actions({"path": ("gone.py", "b.py")})["read"]
    assert read.arguments[0].values == ("b.py", "a.py")


def test_values_are_bounded():
    many = Workspace.of_texts({f"f{n}.py": "" for n in range(MAX_VALUES + 50)})
    assert len(actions(workspace=many)["read"].arguments[0].values) == MAX_VALUES


def test_a_tool_whose_arguments_have_no_grammar_is_left_out():
    class Weights(BaseModel):
        weights: dict[str, float]

    tool = Tool("weigh", "Weighs.", Weights, frozenset({Effect.READ}), TOOLS["read"].call)
    assert possible_actions([tool], FILES, {}, Repeats(), Bounds()) == []


def test_spellings_of_one_call_have_one_form():
    read = TOOLS["read"]
    assert canonical_call(read, {"path": "a.py"}) == canonical_call(
        read, {"start": 1, "path": "a.py"}
    )
    assert canonical_call(read, {"path": "a.py"}) != canonical_call(read, {"path": "b.py"})
    with pytest.raises(ValidationError):
        canonical_call(read, {"path": 3})


def test_repeats_are_forgotten_after_a_write():
    repeats = Repeats()
    call = canonical_call(TOOLS["read"], {"path": "a.py"})
    repeats.add(TOOLS["read"], call, {"path": "a.py"}, ToolOutput("1"))
    assert repeats.used("read") == {"a.py"}
    assert repeats.earlier(TOOLS["read"], call).text == "1"
    assert repeats.take_suspended() == {"read"}
    assert repeats.take_suspended() == frozenset()
    edit = {"path": "a.py", "text": "x"}
    repeats.add(TOOLS["edit"], canonical_call(TOOLS["edit"], edit), edit, ToolOutput("ok"))
    assert repeats.used("read") == frozenset()
    assert repeats.earlier(TOOLS["read"], call) is None
