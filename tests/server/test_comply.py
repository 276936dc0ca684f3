"""llm-comply's checks of the chat API and of Anthropic's, against a server process."""

import re
from dataclasses import replace
from importlib.resources import files

import pytest
from llm_comply.config import ComplianceConfig
from llm_comply.result import TestStatus as Status
from llm_comply.runner import TestRunner as Runner
from llm_comply.schema import SpecLoader
from llm_comply.tests.anthropic import ANTHROPIC_TESTS
from llm_comply.tests.openai_chat import OPENAI_CHAT_TESTS

from tests.server.live import live
from tests.server.process import toy_process
from tests.server.scripted_engine import ScriptedEngine, words
from tests.server.toy_tokenizer import IM_END

UNANSWERED = {"anth-tool-calling"}
"""Checks whose answer has no call of a tool. Only ever gets shorter."""

TOOLS = "chat-tool-calling"
"""The check that needs a model that calls a tool: a scripted one."""

SKIPPED = {"chat-reasoning-summary", "anth-thinking-display"}
"""llm-comply asks it of reasoning models only."""

pytestmark = pytest.mark.filterwarnings("ignore:jsonschema.RefResolver")  # llm-comply's


def run(url, checks, spec):
    loader = SpecLoader(str(files("llm_comply") / "specs" / spec))
    config = ComplianceConfig(f"{url}/v1", "sk-1", model="toy", verbose=True)
    return {one.id: one for one in Runner(config, checks, loader).run_all().results}


@pytest.fixture(scope="module")
def results():
    """Result of each check by name."""
    with toy_process(engine={"force": {8: IM_END}, "context": 2048}, api_key="sk-1") as server:
        return run(
            server.url, [one for one in OPENAI_CHAT_TESTS if one.id != TOOLS], "openai_chat.json"
        ) | run(server.url, ANTHROPIC_TESTS, "anthropic.json")


def test_the_apis_comply_without_a_warning(results):
    passed = {name for name, one in results.items() if one.status is Status.PASSED}
    skipped = {name for name, one in results.items() if one.status is Status.SKIPPED}
    assert len(results) == 17
    assert passed == set(results) - UNANSWERED - SKIPPED
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
