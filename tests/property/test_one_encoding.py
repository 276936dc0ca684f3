"""The screen and the API produce the same token ids for the same conversation."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.calls.chat_form import ChatForm
from app.server.calls.model import LoadedModel
from app.server.calls.prompts import chat_prompt
from app.server.wire.schemas import Message
from engine.clients.in_process import InProcessClient
from engine.conversations.prompt_builder import PromptBuilder
from engine.conversations.tree import Node, NodeKind, NodeStatus
from tests.fakes.chat_toys import ALTERNATING, CHATML, REWRITING, TRIMMED
from tests.server.scripted_engine import INFO, ScriptedEngine, words
from tests.server.toy_tokenizer import CONTROLS, IM_END

NO_SYSTEM = ALTERNATING
TEMPLATES = {
    "chatml": CHATML,
    "trimmed": TRIMMED,
    "rewriting": REWRITING,
    "alternating": NO_SYSTEM,
}

texts = st.lists(
    st.sampled_from([*CONTROLS, "<|im_", "end|>", "</think>", "<", " ", "\n", "é", "hello"])
).map("".join)
# Templates trim answers, stored ids do not: both agree only on answers without outer whitespace.
answers = texts.map(str.strip).filter(bool)


class Screen:
    """Continues a conversation as `TreeSession` does: each answer's ids are stored."""

    def __init__(self, engine, system):
        self.client = InProcessClient(engine)
        self.builder = PromptBuilder(self.client)
        self.path = []
        if system:
            self._add(NodeKind.SYSTEM, system)

    def _add(self, kind, text):
        node = Node(str(len(self.path)), "t", None, kind, text, NodeStatus.DONE, 0.0)
        self.path.append(node)

    def ask(self, text):
        self._add(NodeKind.USER, text)
        prompt = self.builder.build(self.path)
        fresh = {node.id: node for node in prompt.tokenized}
        self.path = [fresh.get(node.id, node) for node in self.path]
        return prompt.token_ids

    def answer(self, text):
        self._add(NodeKind.ASSISTANT, text)
        self.path[-1] = replace(
            self.path[-1],
            token_ids=(*self.client.tokenize(text), IM_END),
            tokenizer=self.client.tokenizer_fingerprint(),
        )

    def messages(self):
        return [Message(role=node.kind.value, content=node.text) for node in self.path]


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
@given(
    turns=st.lists(st.tuples(texts, answers), max_size=3),
    last=texts,
    system=st.none() | texts.filter(bool),
)
def test_screen_and_api_produce_the_same_ids(template, turns, last, system):
    engine = ScriptedEngine(words("unused"), template=template)
    model = LoadedModel(INFO, engine, engine.tokenizer)
    screen = Screen(engine, None if template is NO_SYSTEM else system)
    for question, answer in [*turns, (last, None)]:
        on_screen = screen.ask(question)
        by_api = asyncio.run(chat_prompt(model, screen.messages(), ChatForm())).ids
        assert on_screen == by_api
        if answer is not None:
            screen.answer(answer)
