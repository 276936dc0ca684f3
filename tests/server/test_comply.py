"""llm-comply's checks of the chat API, against a server process."""

import re
from dataclasses import replace
from importlib.resources import files

import pytest
from llm_comply.config import ComplianceConfig
from llm_comply.result import TestStatus as Status
from llm_comply.runner import TestRunner as Runner
from llm_comply.schema import SpecLoader
from llm_comply.tests.openai_chat import OPENAI_CHAT_TESTS

from tests.server.live import live
from tests.server.process import toy_process
from tests.server.scripted_engine import ScriptedEngine, words
from tests.server.toy_tokenizer import IM_END

TOOLS = "chat-tool-calling"
"""The check that needs a model that calls a tool: a scripted one."""

SKIPPED = {"chat-reasoning-summary"}
"""llm-comply asks it of reasoning models only."""

pytestmark = pytest.mark.filterwarnings("ignore:jsonschema.RefResolver")  # llm-comply's


@pytest.fixture(scope="module")
def results():
    """Result of each check by name."""
    spec = SpecLoader(str(files("llm_comply") / "specs" / "openai_chat.json"))
    with toy_process(engine={"force": {8: IM_END}}, api_key="sk-1") as server:
        config = ComplianceConfig(f"{server.url}/v1", "sk-1", model="toy", verbose=True)
        checks = [one for one in OPENAI_CHAT_TESTS if one.id != TOOLS]
        suite = Runner(config, checks, spec).run_all()
    return {one.id: one for one in suite.results}


def test_the_chat_api_complies_without_a_warning(results):
    passed = {name for name, one in results.items() if one.status is Status.PASSED}
    skipped = {name for name, one in results.items() if one.status is Status.SKIPPED}
    assert len(results) == 8
    assert passed == set(results) - SKIPPED
    assert skipped == SKIPPED
    assert [results[name].warnings for name in passed if results[name].warnings] == []


def test_calls_of_tools_comply_without_a_warning():
    spec = SpecLoader(str(files("llm_comply") / "specs" / "openai_chat.json"))
    (check,) = [one for one in OPENAI_CHAT_TESTS if one.id == TOOLS]

    def call_the_tool(request):
        prompt = engine.tokenizer.decode(request.prompt_ids)
        name = re.search(r'"name": "(\w+)"', prompt).group(1)
        return words(f'{{"name": "{name}", "arguments": {{"location": "Paris"}}}}')(request)

    engine = ScriptedEngine(call_the_tool)
    engine.info = replace(engine.info, context_length=4096)
    with live(engine) as server:
        config = ComplianceConfig(f"{server.url}/v1", "sk-1", model="toy", verbose=True)
        (result,) = Runner(config, [check], spec).run_all().results
    assert (result.status, result.errors, result.warnings) == (Status.PASSED, [], [])
