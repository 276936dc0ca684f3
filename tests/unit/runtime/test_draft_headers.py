"""A draft model is checked against the model it drafts for and its memory planned before anything loads."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.api.errors import ModelError
from engine.executors.draft_model import SLOTS
from engine.executors.memory_plan import MemoryPlan
from engine.models.transformers_spec import TransformersSpec
from engine.runtime import loading
from engine.runtime.loading import open_with_headers
from tests.fakes.toy_engine import toy_config
from tests.fakes.toy_executor import toy_model
from tests.fakes.toy_tokenizer import ToyTokenizer

DRAFT = Path("small.gguf")


def opened(draft_changes=None, target_changes=None, context=256, **settings):
    def opener(config):
        model = toy_model(context)
        drafting = config.model == DRAFT
        model.name = "small" if drafting else "toy"
        changes = draft_changes if drafting else target_changes
        for name, value in (changes or {}).items():
            setattr(model, name, value)
        return model

    config = replace(toy_config(), draft_model=DRAFT, **settings)
    return open_with_headers(config, opener)


def torch_spec():
    spec = object.__new__(TransformersSpec)
    facts = {"context_length": 256, "compute_dtype": "f32"}
    for name, value in facts.items():
        object.__setattr__(spec, name, value)
    return spec


class OtherTokenizer(ToyTokenizer):
    fingerprint = "other"

    def __init__(self, token):
        super().__init__()
        self.token = token

    def token_bytes(self, token_id):
        return b"?" if token_id == self.token else super().token_bytes(token_id)


def test_weights_buffers_and_pool_of_the_draft_model_are_in_the_memory_plan():
    alone = open_with_headers(toy_config(), lambda _: toy_model())
    both = opened({"plan_memory": lambda config, **_: MemoryPlan(300, 20, 7, "Q4_K")})
    assert both.draft is not None
    assert both.draft.num_blocks == SLOTS * -(-256 // toy_config().block_size)
    assert both.memory.weight_bytes == alone.memory.weight_bytes + 300
    assert both.memory.work_bytes == alone.memory.work_bytes + 20 + 7 * both.draft.num_blocks
    assert both.memory.block_bytes == alone.memory.block_bytes
    assert both.memory.weight_format == alone.memory.weight_format


def test_a_pair_that_does_not_fit_is_refused_by_name(monkeypatch):
    memory = open_with_headers(toy_config(), lambda _: toy_model())
    enough = memory.memory.weight_bytes + memory.kv_cache.pool_bytes
    monkeypatch.setattr(loading, "available_memory", lambda: enough)
    open_with_headers(toy_config(), lambda _: toy_model())
    with pytest.raises(ModelError, match="toy with its draft model small does not fit in memory"):
        opened()


def test_the_draft_model_takes_the_shorter_context_and_few_rows():
    draft = opened(context=256, max_model_len=100).draft
    assert draft is not None
    assert draft.max_len == draft.config.max_model_len == 100
    assert draft.config.max_num_seqs == SLOTS
    assert draft.config.draft_model is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"spec": replace(toy_model().spec, vocab_size=77)},
            r"small cannot draft for toy: it has 77 tokens, and toy has \d+\.",
        ),
        (
            {"tokenizer": OtherTokenizer(5)},
            r"small cannot draft for toy: token 5 is not the same in both\.",
        ),
        (
            {"spec": torch_spec()},
            r"small cannot be a draft model: it needs the torch executor",
        ),
        (
            {"plan_memory": lambda config, **_: MemoryPlan(1, 1, 1, "Q4_K", state_bytes=8)},
            r"small cannot be a draft model: it has recurrent layers",
        ),
    ],
    ids=["sizes", "tokens", "torch", "recurrent"],
)
def test_a_model_that_cannot_draft_is_refused(changes, sentence):
    with pytest.raises(ModelError, match=sentence):
        opened(changes)


def test_equal_tokens_of_another_file_are_accepted():
    assert opened({"tokenizer": OtherTokenizer(-1)}).draft is not None


def test_special_tokens_must_be_the_same():
    tokenizer = OtherTokenizer(-1)
    tokenizer.special_ids = frozenset({*ToyTokenizer().special_ids, 12})
    with pytest.raises(ModelError, match="token 12 is not the same"):
        opened({"tokenizer": tokenizer})


def test_a_draft_model_without_speculation_is_refused():
    with pytest.raises(ModelError, match="no use without speculation"):
        opened(speculation=False)


def test_a_target_in_the_torch_executor_is_refused():
    with pytest.raises(ModelError, match=r"toy runs in the torch executor, which takes no draft"):
        opened(target_changes={"spec": torch_spec()})
