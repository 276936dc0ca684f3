"""llm-comply's checks of the chat API and of Anthropic's, against a server process."""

from importlib.resources import files

import pytest
from llm_comply.config import ComplianceConfig
from llm_comply.result import TestStatus as Status
from llm_comply.runner import TestRunner as Runner
from llm_comply.schema import SpecLoader
from llm_comply.tests.anthropic import ANTHROPIC_TESTS
from llm_comply.tests.openai_chat import OPENAI_CHAT_TESTS

from tests.server.process import toy_process
from tests.server.toy_tokenizer import IM_END

UNANSWERED = {"anth-tool-calling", "chat-tool-calling"}
"""Checks whose answer has no call of a tool. Only ever gets shorter."""

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
        return run(server.url, OPENAI_CHAT_TESTS, "openai_chat.json") | run(
            server.url, ANTHROPIC_TESTS, "anthropic.json"
        )


def test_the_apis_comply_without_a_warning(results):
    passed = {name for name, one in results.items() if one.status is Status.PASSED}
    skipped = {name for name, one in results.items() if one.status is Status.SKIPPED}
    assert len(results) == 18
    assert passed == set(results) - UNANSWERED - SKIPPED
    assert skipped == SKIPPED
    assert [results[name].warnings for name in passed if results[name].warnings] == []

