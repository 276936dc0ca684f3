"""Files in the input of the Responses API: the model reads their text."""

import base64

import pytest

from tests.retrieval.parsing.samples import docx, paragraph, pdf
from tests.server.files_server import files_server
from tests.server.responses_api import BODY, URL, answering, prompt_of


def encoded(data, kind="application/pdf"):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def message(*parts):
    return [{"role": "user", "content": [*parts, {"type": "input_text", "text": "What is it?"}]}]


def file(**members):
    return {"type": "input_file", **members}


@pytest.fixture(scope="module")
def plain():
    with answering("ok", context=8192) as http:
        yield http


def ask(http, status=200, **fields):
    response = http.post(URL, json=BODY | fields)
    assert response.status_code == status, response.text
    return response.json()


def test_the_text_of_files_stands_where_they_stand(plain):
    report = file(filename="report.pdf", file_data=encoded(pdf(["Profit fell.", "Costs rose."])))
    letter = file(
        filename="letter.docx", file_data=encoded(docx(paragraph("Dear all,")), "application/x")
    )
    ask(plain, input=message(report, letter))
    prompt = prompt_of(plain)
    assert "report.pdf (2 pages):\n```\nProfit fell." in prompt
    assert prompt.index("Costs rose.") < prompt.index("letter.docx:\n```\nDear all,")
    assert prompt.index("Dear all,") < prompt.index("What is it?")


def test_base64_alone_is_a_file_too(plain):
    data = base64.b64encode(b"a,b\n1,2\n").decode()
    ask(plain, input=message(file(file_data=data)))
    assert "file 1:\n```\na,b\n1,2\n```" in prompt_of(plain)


def test_a_file_in_the_result_of_a_call_is_read(plain):
    output = [file(filename="a.txt", file_data=encoded(b"from the tool", "text/plain"))]
    items = [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": output},
    ]
    ask(plain, input=items)
    assert "from the tool" in prompt_of(plain)


def test_the_file_of_an_earlier_response_is_read_again(plain):
    first = ask(
        plain, input=message(file(filename="a.txt", file_data=encoded(b"kept words", "text/plain")))
    )
    ask(plain, input="And?", previous_response_id=first["id"])
    assert "kept words" in prompt_of(plain)
    (item,) = plain.get(f"{URL}/{first['id']}/input_items").json()["data"]
    assert item["content"][0]["type"] == "input_file"  # as it was sent


def test_a_file_may_be_larger_than_a_text(plain):
    large = encoded(b"%PDF-1.4 " + b"x" * (5 << 20))
    error = ask(plain, 400, input=message(file(filename="a.pdf", file_data=large)))["error"]
    assert "can't be attached" in error["message"]  # it was read
    too_large = encoded(b"%PDF-1.4 " + b"x" * (21 << 20))
    given = {"json": BODY | {"input": message(file(filename="a.pdf", file_data=too_large))}}
    assert plain.post(URL, **given).status_code in (400, 413)


def test_uploaded_files_are_read_by_their_ids(tmp_path):
    with files_server(tmp_path) as served:
        uploaded = served.upload("notes.md", b"# Owls\n\nThey eat mice.\n")
        answer = served.api.responses.create(
            model="toy",
            input=message(file(file_id=uploaded.id)),
            max_output_tokens=4,
            extra_body={"ignore_eos": True},
        )
        assert answer.usage.input_tokens > len("# Owls\n\nThey eat mice.\n")
        refused = served.http.post(
            URL, json=BODY | {"input": message(file(file_id="file-none"))}
        ).json()["error"]
        assert (refused["param"], refused["code"]) == (
            "input[0].content[0].file_id",
            "file_not_found",
        )


@pytest.mark.parametrize(
    ("part", "member", "said"),
    [
        ({"file_url": "https://example.org/a.pdf"}, ".file_url", "fetches nothing"),
        ({}, "", "neither `file_data` nor `file_id`"),
        ({"file_data": "%%%"}, ".file_data", "damaged"),
        ({"file_data": "data:text/plain,hello"}, ".file_data", "data:TYPE;base64,"),
        (
            {"file_data": encoded(b"\x00\x01\x02" * 99), "filename": "a.bin"},
            ".file_data",
            "a.bin can't",
        ),
        ({"file_data": encoded(b"  ")}, ".file_data", "empty"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(plain, part, member, said):
    error = ask(plain, 400, input=message(file(**part)))["error"]
    assert error["param"] == f"input[0].content[0]{member}"
    assert said in error["message"]


def test_too_many_files_are_refused(plain):
    many = [file(file_data="YQ==")] * 65
    error = ask(plain, 400, input=message(*many))["error"]
    assert error["code"] == "too_many_files"
