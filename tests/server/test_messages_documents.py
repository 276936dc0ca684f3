"""Documents in the Messages API: the model reads the text of files."""

import base64

import pytest

from tests.retrieval.parsing.samples import pdf
from tests.server.messages_client import ASK, of_input
from tests.server.responses_api import answering, prompt_of

URL = "/v1/messages"


@pytest.fixture(scope="module")
def http():
    with answering("ok", context=8192) as client:
        yield client


def document(**source):
    return {"type": "document", "source": source}


def encoded(data):
    return {
        "type": "base64",
        "media_type": "application/pdf",
        "data": base64.b64encode(data).decode(),
    }


def ask(http, content, status=200, url=URL):
    messages = [{"role": "user", "content": content}]
    response = http.post(url, json=ASK | {"messages": messages})
    assert response.status_code == status, response.text
    return response


QUESTION = {"type": "text", "text": "What is it?"}


def test_a_pdf_is_its_text(http):
    given = document(**encoded(pdf(["Profit fell.", "Costs rose."]))) | {
        "title": "Report",
        "context": "Of May",
    }
    ask(http, [given, QUESTION])
    prompt = prompt_of(http)
    assert "Document: Report\n\nOf May\n\nProfit fell." in prompt
    assert "Costs rose." in prompt


def test_a_pdf_in_the_result_of_a_tool_is_read(http):
    result = {
        "type": "tool_result", "tool_use_id": "t", "content": [document(**encoded(pdf(["Found."])))],
    }  # fmt: skip
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    assert http.post(URL, json=ASK | {"messages": messages}).status_code == 200
    assert "Found." in prompt_of(http)


def test_its_tokens_are_counted(http):
    given = [document(**encoded(pdf(["Profit fell. " * 9]))), QUESTION]
    messages = [{"role": "user", "content": given}]
    body = {"model": "toy", "messages": messages}
    count = http.post(f"{URL}/count_tokens", json=body).json()["input_tokens"]
    assert count == of_input(ask(http, given).json()["usage"])
    assert count > 9 * len("Profit fell.")


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (document(**encoded(b"%PDF-1.7 damaged")), "no valid PDF"),
        (document(type="base64", media_type="application/pdf", data="%%"), "base64"),
        (document(type="url", url="https://example.org/a.pdf"), "fetches no URLs"),
        (document(type="file", file_id="file-1"), "keeps no files"),
        (document(type="base64"), "not valid"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_place(http, block, said):
    expected = 404 if "keeps no" in said else 400
    error = ask(http, [QUESTION, block], expected).json()["error"]
    assert said in error["message"]
    assert "messages[0].content[1].source" in error["message"] or expected == 404


def test_citations_that_are_asked_for_are_reported(http):
    cited = {"citations": {"enabled": True}}
    text = document(type="text", media_type="text/plain", data="Words.") | cited
    found = {
        "type": "search_result", "source": "s", "title": "T", "content": [QUESTION], **cited,
    }  # fmt: skip
    quiet = document(type="text", data="More.") | {"citations": {"enabled": False}}
    response = ask(http, [text, found, quiet, QUESTION])
    assert response.headers["x-pravaha-ignored-fields"] == (
        "messages[0].content[0].citations,messages[0].content[1].citations"
    )
