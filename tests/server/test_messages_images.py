"""Images in Messages requests, read by a parser of the test in place of OCR."""

import base64

import httpx
import pytest

from tests.fakes.image_parser import ImageParser
from tests.fakes.images import whole_png
from tests.server.byte_engine import byte_engine
from tests.server.live import live
from tests.server.messages_client import ASK, create, of_input

INVOICE = whole_png(4, 2)
TEXT = "ACME Ltd.\nInvoice 4711"
LIMIT = 20_000


@pytest.fixture(scope="module")
def client():
    with (
        ImageParser({INVOICE: TEXT}).reader() as reader,
        byte_engine(context=4096) as engine,
        live(engine, image_reader=reader, max_body_bytes=LIMIT) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        yield http


def image(data=INVOICE, **fields):
    encoded = base64.b64encode(data).decode()
    return {"type": "image", "source": {"type": "base64", "data": encoded} | fields}


def ask(content):
    return {"messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("media_type", [None, "image/png", "image/webp"])
def test_an_image_is_read_wherever_it_stands(client, nested, media_type):
    content = [{"type": "text", "text": "What is it?"}, image(media_type=media_type)]
    if nested:
        content = [{"type": "tool_result", "tool_use_id": "t", "content": content}]
    response = client.post("/v1/messages", json=ASK | ask(content))
    assert response.status_code == 200, response.text
    assert response.headers["x-pravaha-images"] == "ocr"
    assert of_input(response.json()["usage"]) > len(TEXT) + len("What is it?")


def test_the_count_has_the_images(client):
    body = ask([image()])
    counted = client.post("/v1/messages/count_tokens", json={"model": "m"} | body)
    assert counted.json()["input_tokens"] == of_input(create(client, **body)["usage"])


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_the_data_of_images_does_not_count_as_text(client, path):
    large = INVOICE + b"\x00" * LIMIT  # what follows the image is not looked at
    response = client.post(path, json=ASK | ask([image(large)]))
    assert response.status_code != 413
    text = {"type": "text", "text": "x y " * LIMIT}
    assert client.post(path, json=ASK | ask([text])).status_code == 413


def test_a_url_is_not_fetched(client):
    source = {"type": "url", "url": "https://example.com/a.png"}
    response = client.post("/v1/messages", json=ASK | ask([{"type": "image", "source": source}]))
    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert message.startswith("messages[0].content[0]: ")
    assert "does not fetch" in message
