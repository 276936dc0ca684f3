"""llm-comply's checks of the chat API, Anthropic's and the Responses API, against a server process."""

import re
from dataclasses import replace
from importlib.resources import files

import pytest
from llm_comply.config import ComplianceConfig
from llm_comply.result import TestStatus as Status
from llm_comply.runner import TestRunner as Runner
from llm_comply.schema import SpecLoader
from llm_comply.tests.anthropic import ANTHROPIC_TESTS
from llm_comply.tests.open_responses import OPEN_RESPONSES_TESTS
from llm_comply.tests.openai_chat import OPENAI_CHAT_TESTS

from tests.server.live import live
from tests.server.process import toy_process
from tests.server.scripted_engine import ScriptedEngine, words
from tests.server.toy_tokenizer import IM_END

SKIPPED = {"chat-reasoning-summary", "anth-thinking-display", "reasoning-summary"}
"""llm-comply asks it of reasoning models only."""

pytestmark = pytest.mark.filterwarnings("ignore:jsonschema.RefResolver")  # llm-comply's


APIS = {
    "openai_chat.json": OPENAI_CHAT_TESTS,
    "anthropic.json": ANTHROPIC_TESTS,
    "openresponses.json": OPEN_RESPONSES_TESTS,
}

WITH_TOOLS = {"chat-tool-calling", "anth-tool-calling", "tool-calling"}
"""Checks that need a model that calls a tool: a scripted one."""


def run(url, *, tools):
    """Result of each check, those with tools or the others, by name."""
    config = ComplianceConfig(f"{url}/v1", "sk-1", model="toy", verbose=True)
    results = {}
    for spec, checks in APIS.items():
        loader = SpecLoader(str(files("llm_comply") / "specs" / spec))
        chosen = [one for one in checks if (one.id in WITH_TOOLS) == tools]
        results |= {one.id: one for one in Runner(config, chosen, loader).run_all().results}
    return results


@pytest.fixture(scope="module")
def results():
    """Result of each check by name."""

    def call_the_tool(request):
        prompt = engine.tokenizer.decode(request.prompt_ids)
        name = re.search(r'"name": "(\w+)"', prompt).group(1)
        return words(f'{{"name": "{name}", "arguments": {{"location": "Paris"}}}}')(request)

    engine = ScriptedEngine(call_the_tool)
    engine.info = replace(engine.info, context_length=4096)
    with (
        toy_process(engine={"force": {8: IM_END}}, api_key="sk-1") as server,
        live(engine) as with_tools,
    ):
        return run(server.url, tools=False) | run(with_tools.url, tools=True)


def test_the_apis_comply_without_a_warning(results):
    passed = {name for name, one in results.items() if one.status is Status.PASSED}
    skipped = {name for name, one in results.items() if one.status is Status.SKIPPED}
    assert len(results) == 31
    assert passed == set(results) - SKIPPED
    assert skipped == SKIPPED
    assert [results[name].warnings for name in passed if results[name].warnings] == []
