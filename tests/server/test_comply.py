"""llm-comply's checks of the chat API, against a server process."""

from importlib.resources import files

import pytest
from llm_comply.config import ComplianceConfig
from llm_comply.result import TestStatus as Status
from llm_comply.runner import TestRunner as Runner
from llm_comply.schema import SpecLoader
from llm_comply.tests.openai_chat import OPENAI_CHAT_TESTS

from tests.server.process import toy_process
from tests.server.toy_tokenizer import IM_END

REFUSED = {"chat-tool-calling": "tools"}
"""Checks of what this server refuses, and the field that its 400 names. Only ever gets shorter."""

SKIPPED = {"chat-reasoning-summary"}
"""llm-comply asks it of reasoning models only."""

pytestmark = pytest.mark.filterwarnings("ignore:jsonschema.RefResolver")  # llm-comply's


@pytest.fixture(scope="module")
def results():
    """Result of each check by name."""
    spec = SpecLoader(str(files("llm_comply") / "specs" / "openai_chat.json"))
    with toy_process(engine={"force": {8: IM_END}}, api_key="sk-1") as server:
        config = ComplianceConfig(f"{server.url}/v1", "sk-1", model="toy", verbose=True)
        suite = Runner(config, OPENAI_CHAT_TESTS, spec).run_all()
    return {one.id: one for one in suite.results}


def test_the_chat_api_complies_without_a_warning(results):
    passed = {name for name, one in results.items() if one.status is Status.PASSED}
    skipped = {name for name, one in results.items() if one.status is Status.SKIPPED}
    assert len(results) == 9
    assert passed == set(results) - set(REFUSED) - SKIPPED
    assert skipped == SKIPPED
    assert [results[name].warnings for name in passed if results[name].warnings] == []


def test_what_is_missing_is_refused_by_name(results):
    named = {name: results[name].response["error"]["param"] for name in REFUSED}
    assert named == REFUSED
    assert all(results[name].errors[0].startswith("HTTP 400") for name in REFUSED)
