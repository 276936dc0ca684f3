"""A tiny model that sees, behind every face: chat completions with the official client, line mode, `run`."""

import base64
import io
from contextlib import closing, contextmanager

import openai
import pytest

from app.plain.repl import PlainChat
from app.server.retrieval.service import RetrievalService
from engine.api.request import Request, SamplingParams
from engine.clients.in_process import InProcessClient
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.vision.opening import open_image
from tests.fakes.gated_embedder import GatedEmbedder
from tests.fakes.tiny_vision import PARTS_TEMPLATE, random_image, tiny_vision
from tests.server.live import live
from tests.torch_executor.running import TIMEOUT_S, running_engine

LENGTH = 8
RED, BLUE = random_image(1, 24, 18), random_image(2, 18, 30)


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    seeing = tiny_vision(tmp_path_factory.mktemp("llava"), "llava")
    (seeing.directory / "chat_template.jinja").write_text(PARTS_TEMPLATE)
    with running_engine(seeing.directory) as engine:
        yield engine


@pytest.fixture(scope="module")
def api(engine, tmp_path_factory):
    service = RetrievalService(tmp_path_factory.mktemp("files"), GatedEmbedder())
    with (
        closing(service),
        live(engine, retrieval=service) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
    ):
        client.retrieval = service
        yield client


def part(image):
    data = base64.b64encode(image.data).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}


def text(words):
    return {"type": "text", "text": words}


def ask(api, *parts, messages=None, raw=False, **fields):
    calls = api.chat.completions
    return (calls.with_raw_response if raw else calls).create(
        model="tiny",
        messages=messages or [{"role": "user", "content": list(parts)}],
        temperature=0,
        max_tokens=LENGTH,
        extra_body={"ignore_eos": True, "return_token_ids": True},
        **fields,
    )


def ids_of(answer):
    return answer.choices[0].token_ids


def expected(engine, messages, images):
    """What the engine answers to a conversation in parts."""
    prompt = engine.tokenizer.encode_chat(messages)
    prompt, placed = engine.place_images(prompt, images)
    sampling = SamplingParams(temperature=0.0, max_tokens=LENGTH, ignore_eos=True)
    handle = engine.submit(Request(prompt, sampling, images=placed))
    return list(handle.wait_result(TIMEOUT_S).token_ids), len(prompt)


@contextmanager
def requests_of(engine):
    """The requests that are submitted in the block."""
    found = []
    submit = engine.submit_all
    engine.submit_all = lambda given: found.extend(given) or submit(given)
    try:
        yield found
    finally:
        del engine.submit_all


class TestHttp:
    def test_the_model_sees_the_image_where_it_stands(self, engine, api):
        raw = ask(api, text("what is "), part(RED), text("?"), raw=True)
        assert raw.headers["x-pravaha-images"] == "model"
        answer = raw.parse()
        content = [text("what is "), {"type": "image"}, text("?")]
        ids, length = expected(engine, [{"role": "user", "content": content}], [RED])
        assert ids_of(answer) == ids
        assert answer.usage.prompt_tokens == length
        (one,) = answer.images
        assert (one["read_by"], one["text"], one["width"]) == ("model", None, 24)

    def test_another_image_is_another_answer(self, api):
        first, second = (ids_of(ask(api, text("what?"), part(one))) for one in (RED, BLUE))
        assert first != second

    def test_a_conversation_with_images_in_two_messages(self, engine, api):
        messages = [
            {"role": "user", "content": [part(RED), text("first")]},
            {"role": "assistant", "content": "seen"},
            {"role": "user", "content": [part(BLUE), text("second")]},
        ]
        shown = {"type": "image"}
        in_parts = [
            {"role": "user", "content": [shown, text("first")]},
            {"role": "assistant", "content": "seen"},
            {"role": "user", "content": [shown, text("second")]},
        ]
        ids, _ = expected(engine, in_parts, [RED, BLUE])
        assert ids_of(ask(api, messages=messages)) == ids

    def test_choices_share_the_image(self, engine, api):
        with requests_of(engine) as requests:
            answer = ask(api, part(RED), text("?"), n=2)
        assert len(answer.choices) == len(requests) == 2
        assert [[placed.image for placed in one.images] for one in requests] == [[RED], [RED]]

    def test_a_stream(self, api):
        chunks = list(ask(api, part(RED), text("?"), stream=True))
        assert [one["read_by"] for one in chunks[0].images] == ["model"]
        ids = [
            token
            for chunk in chunks
            for one in chunk.choices
            for token in getattr(one, "token_ids", [])
        ]
        assert ids == ids_of(ask(api, part(RED), text("?")))

    def test_an_uploaded_file(self, api):
        file = api.files.create(file=("red.png", io.BytesIO(RED.data)), purpose="vision")
        given = {"type": "image_url", "image_url": {"url": file.id}}
        answer = ask(api, given, text("?"))
        assert answer.images[0]["name"] == "red.png"
        assert ids_of(answer) == ids_of(ask(api, part(RED), text("?")))

    def test_one_that_only_has_a_header_is_refused(self, engine, api):
        cut = open_image(RED.data[:60])
        with pytest.raises(openai.BadRequestError) as error:
            ask(api, part(cut), text("?"))
        assert error.value.code == "invalid_image"
        assert "cannot be decoded" in error.value.message
        assert engine.wait_drained(TIMEOUT_S)

    def test_spelled_placeholders_are_text(self, engine, api):
        answer = ask(api, text("<image>"), part(RED))
        content = [text("<image>"), {"type": "image"}]
        ids, _ = expected(engine, [{"role": "user", "content": content}], [RED])
        assert ids_of(answer) == ids


class TestLineMode:
    def test_a_message_is_sent_with_its_image(self, engine, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "red.png").write_bytes(RED.data)
        out = io.StringIO()
        lines = iter(["What is it? @red.png"])

        def read(prompt):
            try:
                return next(lines)
            except StopIteration:
                raise EOFError from None

        client = InProcessClient(engine)
        with closing(Store.open(tmp_path / "c.db")) as store:
            session = TreeSession(store, client)
            chat = PlainChat(session, client, read=read, out=out, show_prompts=True)
            with requests_of(engine):
                assert chat.run(), out.getvalue()
            (message, *_) = session.path()
            assert session.nodes.images_of(message.id) == (open_image(RED.data),)
            session.close()
        assert "(red.png: the model sees the image)" in out.getvalue()
