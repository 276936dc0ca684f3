"""Drafts of a draft model: exact, with KV of the right tokens, limited in what they may lose."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from engine._core import BlockAllocator
from engine.api.errors import ExecutorError
from engine.api.step_costs import StepCosts
from engine.executors.draft_model import CATCH_UP_TOKENS, SLOTS, DraftModel, slot_blocks
from engine.scheduler.model_drafts import ALLOWANCE, MAX_BALANCE, ModelDrafts
from tests.fakes.toy_engine import ask
from tests.fakes.toy_executor import ToyExecutor, oracle
from tests.fakes.toy_pipeline import ToyPipeline

PROMPT = [(3 + 7 * i) % 90 for i in range(10)]
CHEAP = StepCosts(constant=1.0, prefill_token=1e-3, decode_row=1e-3, kv_token=0.0)
"""A step costs a second, another token in it next to nothing."""


class WeakExecutor(ToyExecutor):
    """A toy model that agrees with the toy model on a share `right` of its tokens."""

    def __init__(self, num_blocks, block_size, *, right, force=None):
        super().__init__(num_blocks, block_size, force=force)
        self.right = right
        self.on_step = lambda: None

    def execute(self, plan):
        self.on_step()
        return super().execute(plan)

    def _logits(self, plan, row, length):
        logits = super()._logits(plan, row, length)
        history = plan.token_table[row, :length]
        chance = np.random.default_rng(history.astype(np.uint64).tolist()).random()
        return logits if chance < self.right else np.roll(logits, 1)


class Drafting:
    """A toy pipeline with a draft model, whose steps take no time unless a test says so."""

    def __init__(self, *, right=1.0, draft_context=256, costs=CHEAP, force=None, **options):
        self.toy = ToyPipeline(**{"allocator": BlockAllocator, "force": force} | options)
        self.toy.pipeline.scheduler.work.model._costs = costs
        self.toy.pipeline.scheduler.work.model._observations = 1
        self.block_size = self.toy.table.block_size
        self.now = 0.0
        width = slot_blocks(draft_context, self.block_size)
        self.executor = WeakExecutor(SLOTS * width, self.block_size, right=right, force=force)
        self.model = DraftModel(
            self.executor,
            name="draft",
            max_len=draft_context,
            block_size=self.block_size,
            clock=lambda: self.now,
        )
        self.model.warm_up()
        self.executor.steps.clear()
        self.source = self.toy.pipeline.scheduler.model_drafts = ModelDrafts(
            self.toy.table, self.model, token_budget=self.toy.budget, clock=lambda: self.now
        )

    def takes(self, seconds):
        """Let the draft model believe that a step takes it so long."""
        self.model.token_seconds = self.model._shortest_seconds = seconds

    def run(self):
        """Run to the end; after each step the draft model's blocks hold the KV of its tokens."""
        for _ in range(10_000):
            if not self.toy.pipeline.has_work:
                return
            self.toy.step()
            self.check()
        raise AssertionError("still busy")

    def check(self):
        for slot in range(SLOTS):
            places = np.arange(int(self.model._num_computed[slot]))
            blocks = self.model._block_tables[slot, places // self.block_size]
            stored = self.executor.kv[blocks, places % self.block_size]
            assert (stored == self.model._tokens[slot, places]).all()

    @property
    def totals(self):
        return self.toy.counters.totals()

    @property
    def computed(self):
        """Tokens that the draft model has computed."""
        return sum(int(lengths.sum()) for _, lengths in self.executor.steps)


def outcome(handle):
    output = handle.wait_result()
    return (
        output.token_ids,
        output.text,
        output.finish_reason,
        output.logprobs,
        output.top_logprobs,
    )


@given(
    prompts=st.lists(st.lists(st.integers(0, 97), min_size=1, max_size=90), min_size=1, max_size=3),
    right=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    budget=st.sampled_from([2, 7, 16, 64]),
    tokens=st.integers(110, 300),
    block_size=st.sampled_from([1, 3, 4, 16]),
    draft_context=st.sampled_from([20, 256]),
    temperature=st.sampled_from([0.0, 0.8]),
    penalty=st.sampled_from([0.0, 1.5]),
    dry=st.sampled_from([{}, {"dry_multiplier": 3.0, "dry_sequence_breakers": ("e",)}]),
    bias=st.sampled_from([(), ((5, 6.0), (9, -3.0))]),
    logprobs=st.sampled_from([None, 0, 3]),
    ignore_eos=st.booleans(),
    stop=st.sampled_from([(), ("a", "b", "zz"), ("q",)]),
    max_tokens=st.integers(1, 16),
)
@settings(max_examples=40)
def test_answers_are_equal_with_and_without_a_draft_model(
    prompts, right, budget, tokens, block_size, draft_context, stop, penalty, dry, bias, **params
):
    """In any chunking, with preemption where the pool is small, and in slots that change hands."""
    options = {
        "budget": budget,
        "blocks": -(-tokens // block_size),
        "block_size": block_size,
        "rows": 3,
    }

    def submit(toy):
        return [
            toy.submit(
                ask(
                    prompt,
                    seed=number,
                    stop=stop,
                    frequency_penalty=penalty,
                    logit_bias=bias,
                    **dry,
                    **params,
                )
            )
            for number, prompt in enumerate(prompts)
        ]

    plain = ToyPipeline(allocator=BlockAllocator, **options)
    expected = submit(plain)
    plain.run()
    drafting = Drafting(right=right, draft_context=draft_context, **options)
    handles = submit(drafting.toy)
    drafting.run()
    drafting.toy.assert_idle()
    assert drafting.source.error is None
    for one, other in zip(expected, handles, strict=True):
        assert outcome(other) == outcome(one)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_samples_of_an_equal_model_are_all_accepted(temperature):
    """Both models add the same noise, so that equal distributions give equal samples."""
    drafting = Drafting()
    request = ask(PROMPT, temperature=temperature, seed=5, max_tokens=40, ignore_eos=True)
    handle = drafting.toy.submit(request)
    drafting.run()
    assert handle.wait_result().token_ids == oracle(request)
    totals = drafting.totals
    assert totals.model_draft_tokens == totals.accepted_model_draft_tokens == totals.draft_tokens
    assert totals.steps < 10
    assert sum(handle.wait_result().drafted) == totals.accepted_draft_tokens


def test_forks_and_preemption_do_not_confuse_the_slots():
    drafting = Drafting(right=0.7, blocks=18, block_size=4, rows=2, budget=16)
    toy = drafting.toy
    parent_request = ask(PROMPT, temperature=0.8, seed=3, max_tokens=40, ignore_eos=True)
    parent = toy.submit(parent_request)
    toy.step(4)
    child = toy.fork(parent, n=1)[0]
    other_request = ask(PROMPT[::-1], temperature=0.8, seed=4, max_tokens=40, ignore_eos=True)
    other = toy.submit(other_request)
    drafting.run()
    assert toy.counters.totals().preemptions > 0
    assert parent.wait_result().token_ids == oracle(parent_request)
    assert other.wait_result().token_ids == oracle(other_request)
    seed = int(toy.sequences[child.request_id].sampling["seed"])
    start = toy.sequences[child.request_id].penalty_start
    assert child.wait_result().token_ids == oracle(
        child.request, seed=seed, penalty_start=int(start)
    )
    assert drafting.totals.accepted_model_draft_tokens > 0


def test_a_conversation_that_goes_on_is_not_computed_again():
    drafting = Drafting(context=512, blocks=256)
    prompts = {seed: [(seed + 5 * i) % 90 for i in range(100)] for seed in (1, 2)}
    for turn in range(3):
        for seed, prompt in prompts.items():
            before = drafting.computed
            request = ask(prompt, max_tokens=20, ignore_eos=True)
            handle = drafting.toy.submit(request)
            drafting.run()
            computed = drafting.computed - before
            assert computed < 60 if turn else computed >= 100
            prompts[seed] = [*prompt, *handle.wait_result().token_ids, 17, 18]


def test_a_long_prompt_is_caught_up_with_in_several_steps():
    drafting = Drafting(context=512, blocks=256, budget=512)
    request = ask([(7 * i) % 90 for i in range(200)], max_tokens=30, ignore_eos=True)
    handle = drafting.toy.submit(request)
    drafting.run()
    assert handle.wait_result().token_ids == oracle(request, max_model_len=512)
    lengths = [int(lengths.max()) for _, lengths in drafting.executor.steps]
    assert max(lengths) == CATCH_UP_TOKENS
    assert drafting.totals.accepted_model_draft_tokens > 0


def test_many_rows_have_no_drafts_and_get_them_once_few_are_left():
    drafting = Drafting(rows=4)
    for seed in range(4):
        tokens = 6 if seed < 2 else 40
        drafting.toy.submit(ask(PROMPT, seed=seed, max_tokens=tokens, ignore_eos=True))
    while drafting.toy.pipeline.scheduler.num_running in (0, 3, 4):
        drafting.toy.step()
        if drafting.toy.pipeline.scheduler.num_running > SLOTS:
            assert drafting.totals.draft_tokens == 0
    drafting.run()
    assert drafting.totals.draft_tokens > 0


def test_a_failing_draft_model_is_turned_off_and_no_request_fails():
    drafting = Drafting()
    request = ask(PROMPT, max_tokens=40, ignore_eos=True)
    handle = drafting.toy.submit(request)
    while not drafting.totals.draft_tokens:
        drafting.toy.step()
    drafting.executor.fail_with = [ExecutorError("out of luck")]
    before = drafting.totals.draft_tokens
    drafting.run()
    assert handle.wait_result().token_ids == oracle(request)
    assert drafting.source.error == "out of luck"
    assert drafting.totals.draft_tokens == before


def test_logits_that_are_not_numbers_end_a_draft():
    drafting = Drafting()
    drafting.executor.poison = lambda history: len(history) % 3 == 0
    request = ask(PROMPT, max_tokens=40, ignore_eos=True)
    handle = drafting.toy.submit(request)
    drafting.run()
    assert handle.wait_result().token_ids == oracle(request)
    assert drafting.source.error is None
    assert drafting.totals.accepted_model_draft_tokens > 0


@pytest.mark.parametrize("costs", [CHEAP, StepCosts(1.0, 0.1, 0.4, 0.0)])
def test_drafts_that_are_always_rejected_lose_little(costs):
    """The clock of the draft model advances by a third of a step of the target per draft step."""
    drafting = Drafting(right=0.0, context=2048, draft_context=2048, blocks=1024, costs=costs)
    drafting.takes(0.3)

    def advance():
        drafting.now += 0.3

    drafting.executor.on_step = advance
    source, drafting_seconds, target_seconds = drafting.source, 0.0, 0.0
    settle = source.settle

    def settle_with_times(seconds, spent, generated, rows, *, drafted):
        nonlocal drafting_seconds, target_seconds
        target = 1.0
        drafting_seconds += spent
        target_seconds += target
        settle(target, spent, generated, rows, drafted=drafted)

    source.settle = settle_with_times
    handle = drafting.toy.submit(ask(PROMPT, max_tokens=1000, ignore_eos=True))
    for _ in range(600):
        drafting.toy.step()
    assert drafting_seconds > 0
    assert drafting_seconds < MAX_BALANCE + ALLOWANCE * target_seconds + 16 * 0.3
    assert not handle.finished


def test_expensive_drafts_are_not_tried():
    drafting = Drafting(right=1.0)
    drafting.takes(0.9)  # of a step of one second
    drafting.toy.submit(ask(PROMPT, max_tokens=20, ignore_eos=True))
    drafting.run()
    assert drafting.totals.draft_tokens == 0
    assert drafting.computed == 0


def test_a_time_of_a_busy_moment_is_forgotten():
    drafting = Drafting()
    drafting.takes(0.1)
    drafting.model.token_seconds = 3.0
    drafting.toy.submit(ask(PROMPT, max_tokens=200, ignore_eos=True))
    drafting.run()
    assert drafting.totals.accepted_model_draft_tokens > 0


def test_a_stop_token_is_never_drafted():
    drafting = Drafting(force={6: 98})
    request = ask(PROMPT, max_tokens=40)
    handle = drafting.toy.submit(request)
    drafting.run()
    assert handle.wait_result().token_ids == oracle(request, force={6: 98})
