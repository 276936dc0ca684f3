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

REFUSED = {"chat-tool-calling": "tools"}
"""Checks of what this server refuses, and the field that its 400 names. Only ever gets shorter."""

UNANSWERED = {"anth-tool-calling"}
"""Checks whose answer has no call of a tool. Only ever gets shorter."""

SKIPPED = {"chat-reasoning-summary", "anth-thinking-display"}
"""llm-comply asks it of reasoning models only."""

pytestmark = pytest.mark.filterwarnings("ignore:jsonschema.RefResolver")  # llm-comply's


APIS = {"openai_chat.json": OPENAI_CHAT_TESTS, "anthropic.json": ANTHROPIC_TESTS}

WITH_TOOLS = {"chat-tool-calling", "anth-tool-calling"}
"""Checks whose prompts are longer, and whose answers must be able to be calls."""


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
    short = {"force": {8: IM_END}}
    long = {"context": 4096, "blocks": 1024}
    with (
        toy_process(engine=short, api_key="sk-1") as server,
        toy_process(engine=long, api_key="sk-1") as with_tools,
    ):
        return run(server.url, tools=False) | run(with_tools.url, tools=True)


def test_the_apis_comply_without_a_warning(results):
    passed = {name for name, one in results.items() if one.status is Status.PASSED}
    skipped = {name for name, one in results.items() if one.status is Status.SKIPPED}
    assert len(results) == 18
    assert passed == set(results) - set(REFUSED) - UNANSWERED - SKIPPED
    assert skipped == SKIPPED
    assert [results[name].warnings for name in passed if results[name].warnings] == []


def test_what_is_missing_is_refused_by_name(results):
    named = {name: results[name].response["error"]["param"] for name in REFUSED}
    assert named == REFUSED
    assert all(results[name].errors[0].startswith("HTTP 400") for name in REFUSED)
