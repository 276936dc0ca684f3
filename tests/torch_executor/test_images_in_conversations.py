"""A conversation with images, from the store to a model and back."""

import time

import pytest

from engine.api.generation_defaults import SamplingChoice
from engine.api.request import SamplingParams
from engine.clients.in_process import InProcessClient
from engine.conversations.session import TreeSession
from engine.conversations.storage.store import Store
from engine.runtime.engine import AsyncPravahaEngine
from tests.fakes.tiny_vision import random_image, tiny_vision
from tests.torch_executor.loaded import torch_config

TIMEOUT_S = 60
RED, BLUE = random_image(1), random_image(2, 70, 20)
CHOICE = SamplingChoice(SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True))


def finish(session):
    deadline = time.monotonic() + TIMEOUT_S
    while session.answers.generating:
        assert time.monotonic() < deadline, "no answer"
        session.pump()
        time.sleep(0.005)


def parts(text, images):
    return [{"type": "image"}] * images + [{"type": "text", "text": text}]


@pytest.mark.parametrize("name", ["llava", "idefics3"])
def test_answers_are_those_of_transformers_over_a_restart(tmp_path, name):
    seeing = tiny_vision(tmp_path / "model", name)
    client = InProcessClient(AsyncPravahaEngine(torch_config(seeing.directory)))
    client._engine.start()
    try:
        client._engine.wait_ready(TIMEOUT_S)
        messages, images, cached = [], [], []
        for text, added in (("what is it?", [RED]), ("and this?", [BLUE]), ("again", [])):
            store = Store.open(tmp_path / "conversations.db")
            session = TreeSession(store, client, sampling=CHOICE)
            session.messages.send(text, images=added)
            finish(session)
            node = session.nodes.path_to(session.head)[-1]
            messages.append({"role": "user", "content": parts(text, len(added))})
            images += added
            rendered = seeing.processor.apply_chat_template(messages, add_generation_prompt=True)
            prompt, expected = seeing.generate(rendered, images, 8)
            if len(messages) == 1:  # later prompts have the ids of the answers, not of their text
                assert (node.n_prompt, list(node.token_ids)) == (len(prompt), expected)
            else:
                whole = list(session.tokens.prompt_ids(session.path()[-2].id))
                inputs = seeing.inputs("<image>" * len(images), images)
                assert list(node.token_ids) == seeing.greedy(whole, inputs, 8)
            cached.append(node.n_cached)
            messages.append({"role": "assistant", "content": [{"type": "text", "text": node.text}]})
            session.close()
            store.close()
        assert cached[0] == 0
        assert cached[2] > cached[1] > 16
    finally:
        client.close()
