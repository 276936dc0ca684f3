"""llm-comply's checks of the chat API and of the Responses API, against a server process."""

from importlib.resources import files

import pytest
from llm_comply.config import ComplianceConfig
from llm_comply.result import TestStatus as Status
from llm_comply.runner import TestRunner as Runner
from llm_comply.schema import SpecLoader
from llm_comply.tests.open_responses import OPEN_RESPONSES_TESTS
from llm_comply.tests.openai_chat import OPENAI_CHAT_TESTS

from tests.server.process import toy_process
from tests.server.toy_tokenizer import IM_END

REFUSED = {"chat-tool-calling": "tools"}
"""Checks of what this server refuses, and the field that its 400 names. Only ever gets shorter."""

SKIPPED = {"chat-reasoning-summary"}
"""llm-comply asks it of reasoning models only."""

RESPONSES_FAILED = {"tool-calling"}
"""Checks that the toy model fails: it writes no calls. Only ever gets shorter."""

pytestmark = pytest.mark.filterwarnings("ignore:jsonschema.RefResolver")  # llm-comply's


def checked(spec, tests):
    """Result of each check by name."""
    spec = SpecLoader(str(files("llm_comply") / "specs" / spec))
    with toy_process(engine={"force": {8: IM_END}}, api_key="sk-1") as server:
        config = ComplianceConfig(f"{server.url}/v1", "sk-1", model="toy", verbose=True)
        suite = Runner(config, tests, spec).run_all()
    return {one.id: one for one in suite.results}


@pytest.fixture(scope="module")
def results():
    return checked("openai_chat.json", OPENAI_CHAT_TESTS)


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


def test_the_responses_api_complies_without_a_warning():
    found = checked("openresponses.json", OPEN_RESPONSES_TESTS)
    failed = {name: one.errors for name, one in found.items() if one.status is Status.FAILED}
    skipped = {name for name, one in found.items() if one.status is Status.SKIPPED}
    assert len(found) == 13
    assert failed.keys() == RESPONSES_FAILED
    assert skipped == {"reasoning-summary"}
    assert [one.warnings for one in found.values() if one.warnings] == []
