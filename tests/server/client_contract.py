"""The contract of `EngineClient`, as one class of tests for both transports.

A subclass gives `client` and `engine`; the engine is the real one with the toy executor.
"""

import threading
import time
from dataclasses import replace

import pytest

from engine.api.errors import InvalidRequest, UnknownRequest
from engine.api.events import (
    FirstToken,
    PrefixPinned,
    PrefixUnpinned,
    RequestFinished,
    RequestQueued,
    RequestScheduled,
)
from engine.api.generation_defaults import GenerationDefaults
from engine.api.grammar import Grammar
from engine.api.request import FinishReason, Request, SamplingParams
from engine.api.request_status import RequestState
from engine.api.residency import Residency
from engine.api.scheduling import Scheduling
from engine.api.snapshot import BlockState, EngineState
from engine.api.tools import Tool, ToolChoice
from engine.clients.engine_client import EngineClient
from engine.grammar.call_grammar import call_grammar
from engine.runtime.forking import child_seed
from engine.text.control_tokens import ControlTokens
from engine.text.tool_calls.forms.hermes import HERMES
from tests.server.byte_engine import is_quiet, wait_until
from tests.server.toy_tokenizer import IM_START

DEFAULTS = GenerationDefaults(temperature=0.5, top_k=3, source="a test")
"""The generation defaults of the slow engine's model."""


def ask(prompt="hello", **params):
    defaults = {"temperature": 0.0, "max_tokens": 12, "ignore_eos": True}
    return Request(tuple(prompt.encode()), SamplingParams(**defaults | params))


def drain_all(client, request_id):
    """All batches of an answer, concatenated."""
    batches = []

    def ended():
        batch = client.drain(request_id)
        if batch is not None:
            batches.append(batch)
        return batch is not None and batch.finish_reason is not None

    wait_until(ended)
    return batches


def ids_of(batches):
    return tuple(one for batch in batches for one in batch.token_ids)


def text_of(batches):
    return "".join(batch.text for batch in batches)


def add_batch(client, request_id, batches):
    batch = client.drain(request_id)
    if batch is not None:
        batches.append(batch)
    return True


class ClientContract:
    def test_it_is_an_engine_client(self, client):
        members = [name for name in vars(EngineClient) if not name.startswith("_")]
        assert [name for name in members if not callable(getattr(client, name))] == []

    def test_an_answer_is_what_the_engine_computes(self, client, engine):
        request = ask()
        expected = engine.submit(ask()).wait_result(30)
        assert client.submit(request) == request.request_id
        batches = drain_all(client, request.request_id)
        assert ids_of(batches) == expected.token_ids
        assert text_of(batches) == expected.text
        assert batches[-1].finish_reason is FinishReason.LENGTH
        assert {batch.request_id for batch in batches} == {request.request_id}

    def test_the_final_batch_forgets_the_request(self, client):
        request_id = client.submit(ask())
        drain_all(client, request_id)
        assert client.drain(request_id) is None

    def test_draining_an_unknown_request_is_nothing(self, client):
        assert client.drain("nobody") is None
        client.cancel("nobody")

    def test_logprobs_and_alternatives(self, client, engine):
        expected = engine.submit(ask(logprobs=3)).wait_result(30)
        batches = drain_all(client, client.submit(ask(logprobs=3)))
        logprobs = [one for batch in batches for one in batch.logprobs]
        tops = [row for batch in batches for row in batch.top_logprobs]
        assert logprobs == pytest.approx(expected.logprobs)
        assert [[top.token_id for top in row] for row in tops] == [
            [top.token_id for top in row] for row in expected.top_logprobs
        ]
        assert all(len(row) == 3 for row in tops)

    def test_logprobs_of_chosen_token_ids(self, client, engine):
        params = {"logprob_token_ids": (7, 200, 7)}
        expected = engine.submit(ask(**params)).wait_result(30)
        batches = drain_all(client, client.submit(ask(**params)))
        values = [row for batch in batches for row in batch.token_id_logprobs]
        assert len(values) == 12
        assert values == [pytest.approx(row) for row in expected.token_id_logprobs]
        assert all(len(batch.token_id_logprobs) == len(batch.token_ids) for batch in batches)

    def test_control_tokens_that_are_shown(self, client, engine):
        texts = []
        for shown in (frozenset(), frozenset({IM_START})):
            params = {"logit_bias": ((IM_START, 100.0),), "shown_control_ids": shown}
            expected = engine.submit(ask(**params)).wait_result(30)
            batches = drain_all(client, client.submit(ask(**params)))
            texts.append("".join(batch.text for batch in batches))
            assert texts[-1] == expected.text
        assert "<|im_start|>" not in texts[0]
        assert "<|im_start|>" in texts[1]

    def test_prompt_logprobs_come_with_the_first_batch(self, client, engine):
        params = {"prompt_logprobs": 2, "max_tokens": 3}
        expected = engine.submit(ask("a prompt", **params)).wait_result(30).prompt_logprobs
        first, *later = drain_all(client, client.submit(ask("a prompt", **params)))
        scores = first.prompt_logprobs
        assert scores.logprobs == pytest.approx(expected.logprobs)
        assert scores.ranks == expected.ranks
        assert [[top.token_id for top in row] for row in scores.top] == [
            [top.token_id for top in row] for row in expected.top
        ]
        assert len(scores.logprobs) == len("a prompt") - 1
        assert [batch.prompt_logprobs for batch in later] == [None] * len(later)

    def test_a_prompt_alone_can_be_scored(self, client):
        request = ask("a prompt", prompt_logprobs=0, max_tokens=0)
        (batch,) = drain_all(client, client.submit(request))
        assert batch.token_ids == ()
        assert batch.finish_reason is FinishReason.LENGTH
        assert len(batch.prompt_logprobs.logprobs) == len("a prompt") - 1

    def test_a_seed_replays_and_is_reported(self, client):
        first = drain_all(client, client.submit(ask(temperature=1.0, seed=2**63 + 5)))
        again = drain_all(client, client.submit(ask(temperature=1.0, seed=2**63 + 5)))
        assert ids_of(first) == ids_of(again)
        assert first[-1].seed == 2**63 + 5
        drawn = drain_all(client, client.submit(ask(temperature=1.0)))
        replayed = drain_all(client, client.submit(ask(temperature=1.0, seed=drawn[-1].seed)))
        assert ids_of(drawn) == ids_of(replayed)

    def test_every_sampling_field_counts(self, client, engine):
        fields = {
            "temperature": 0.7,
            "top_k": 30,
            "top_p": 0.9,
            "min_p": 0.02,
            "repetition_penalty": 1.2,
            "presence_penalty": 0.5,
            "frequency_penalty": 0.25,
            "dry_multiplier": 0.8,
            "dry_base": 2.5,
            "dry_allowed_length": 1,
            "dry_penalty_last_n": 40,
            "dry_sequence_breakers": ("e",),
            "logit_bias": ((65, 3.0), (66, -5.0)),
            "seed": 11,
            "max_tokens": 30,
            "stop": ("zz", "qq"),
            "stop_token_ids": (1,),
            "include_stop": True,
        }
        expected = engine.submit(ask(**fields)).wait_result(30)
        batches = drain_all(client, client.submit(ask(**fields)))
        assert ids_of(batches) == expected.token_ids
        assert text_of(batches) == expected.text
        assert batches[-1].finish_reason is expected.finish_reason

    @pytest.mark.parametrize(
        "grammar",
        [
            Grammar.json_schema('{"enum": [ "one", {"two": 2} ]}'),
            Grammar.json_object(),
            Grammar.regex("[0-9]{5}"),
            Grammar.choice(["north", 'so"uth', "é"]),
            Grammar.lark('start: "<" /[a-z]{3}/ ">"'),
        ],
        ids=lambda grammar: grammar.kind,
    )
    def test_a_grammar_arrives_as_it_is(self, client, engine, grammar):
        fields = {"grammar": grammar, "ignore_eos": False, "temperature": 1.0, "seed": 4}
        expected = engine.submit(ask(**fields)).wait_result(60)
        batches = drain_all(client, client.submit(ask(**fields)))
        assert expected.finish_reason is not FinishReason.ERROR
        assert ids_of(batches) == expected.token_ids
        assert batches[-1].finish_reason is expected.finish_reason

    def test_calls_of_tools_are_constrained(self, client):
        grammar = call_grammar(HERMES, [Tool("now")], ToolChoice(), ControlTokens({}), calls=1)
        request = ask("x", max_tokens=200, grammar=grammar, ignore_eos=False, seed=4)
        client.submit(request)
        text = text_of(drain_all(client, request.request_id))
        assert text == '{"name": "now", "arguments": {}}\n</tool_call>'

    def test_stop_tokens_are_among_the_ids(self, client):
        request = ask(logit_bias=((66, 100.0),), stop_token_ids=(66,))
        batches = drain_all(client, client.submit(request))
        assert ids_of(batches) == (66,)
        assert text_of(batches) == ""
        assert batches[-1].finish_reason is FinishReason.STOP

    def test_no_limit_means_the_end_of_the_context(self, client, engine):
        batches = drain_all(client, client.submit(ask(max_tokens=None)))
        assert len(ids_of(batches)) == engine.model_info.context_length - len("hello")

    def test_cancelling_ends_with_abort_and_frees_the_blocks(self, slow_client, slow_engine):
        request_id = slow_client.submit(ask(max_tokens=None))
        wait_until(lambda: slow_engine.snapshot().running == 1)
        slow_client.cancel(request_id)
        batches = drain_all(slow_client, request_id)
        assert batches[-1].finish_reason is FinishReason.ABORT
        wait_until(lambda: is_quiet(slow_engine))

    def test_timings_are_on_this_machines_clock(self, client):
        timings = drain_all(client, client.submit(ask()))[-1].timings
        assert timings.queued <= timings.scheduled <= timings.first_token <= timings.last_token

    def test_many_requests_at_once(self, client, engine):
        requests = [ask(f"number {number}", seed=number, temperature=0.5) for number in range(24)]
        expected = [
            engine.submit(Request(one.prompt_ids, one.sampling)).wait_result(30).token_ids
            for one in requests
        ]
        for one in requests:
            client.submit(one)
        assert [ids_of(drain_all(client, one.request_id)) for one in requests] == expected

    @pytest.mark.parametrize(
        ("params", "param"),
        [({"top_p": 0.0}, "top_p"), ({"temperature": -1.0}, "temperature")],
    )
    def test_a_bad_parameter_is_refused_by_name(self, client, params, param):
        with pytest.raises(InvalidRequest) as refused:
            client.submit(ask(**params))
        assert refused.value.param == param

    def test_a_prompt_longer_than_the_context_is_refused(self, client):
        with pytest.raises(InvalidRequest):
            client.submit(ask("x" * 600))

    def test_an_id_in_use_is_refused(self, slow_client, slow_engine):
        request = ask(max_tokens=None)
        slow_client.submit(request)
        with pytest.raises(InvalidRequest):
            slow_client.submit(request)
        slow_client.cancel(request.request_id)
        drain_all(slow_client, request.request_id)
        wait_until(lambda: is_quiet(slow_engine))

    def test_the_snapshot_follows_the_engine(self, client, engine):
        drain_all(client, client.submit(ask()))
        finished = engine.snapshot().totals.generation_tokens
        wait_until(lambda: client.snapshot().totals.generation_tokens >= finished)
        snapshot = client.snapshot()
        assert snapshot.state is EngineState.READY
        assert snapshot.model == engine.model_info
        assert snapshot.blocks.total == engine.snapshot().blocks.total

    def test_the_models_generation_defaults_are_in_the_snapshot(self, slow_client, slow_engine):
        wait_until(lambda: slow_client.snapshot().model is not None)
        assert slow_client.snapshot().model == slow_engine.snapshot().model
        assert slow_client.snapshot().model.generation_defaults == DEFAULTS

    def test_blocks_come_once_an_epoch(self, slow_client, slow_engine):
        request_id = slow_client.submit(ask(max_tokens=None))
        seen = []

        def owner_is_shown():
            block_map = slow_client.blocks(seen[-1].epoch if seen else -1)
            if block_map is not None:
                assert not seen or block_map.epoch > seen[-1].epoch
                seen.append(block_map)
            return bool(seen) and request_id in seen[-1].owners

        wait_until(owner_is_shown)
        assert len(seen[-1].state) == slow_engine.snapshot().blocks.total
        assert (seen[-1].owner >= 0).sum() >= 1
        slow_client.cancel(request_id)
        drain_all(slow_client, request_id)
        wait_until(lambda: is_quiet(slow_engine))

    def test_the_request_table_shows_a_running_request(self, slow_client, slow_engine):
        request = ask("a request to be listed", max_tokens=400)
        request = replace(request, priority=3, deadline_ms=60_000)
        request_id = slow_client.submit(request)

        def status():
            named = [s for s in slow_client.request_table() if s.request_id == request_id]
            return named[0] if named else None

        wait_until(lambda: (seen := status()) is not None and seen.generated_tokens > 2)
        seen = status()
        assert seen.state is RequestState.DECODE
        assert seen.prompt_tokens == len(request.prompt_ids)
        assert seen.blocks >= 1
        assert seen.computed_tokens >= seen.prompt_tokens
        assert seen.ttft > 0
        assert seen.itl > 0
        assert seen.priority == 3
        now = time.monotonic()
        assert now - 60 < seen.queued_at < now < seen.deadline < now + 60
        slow_client.cancel(request_id)
        drain_all(slow_client, request_id)
        wait_until(lambda: is_quiet(slow_engine))
        wait_until(lambda: slow_client.request_table() == ())

    def test_a_block_is_described_with_its_text_and_owner(self, slow_client, slow_engine):
        prompt = "the first block of this prompt is full"
        request_id = slow_client.submit(ask(prompt, max_tokens=400))
        held = []

        def holds():
            block_map = slow_client.blocks(-1)
            if block_map is not None:
                held[:] = block_map.blocks_of(request_id).tolist()
            return bool(held)

        wait_until(holds)
        wait_until(lambda: (seen := slow_client.block(held[0])) is not None and seen.fill == 16)
        seen = slow_client.block(held[0])
        assert seen == replace(slow_engine.block(held[0]), children=seen.children)
        assert seen.text == prompt[:16]
        assert [one.request_id for one in seen.owners] == [request_id]
        assert (seen.state, seen.first_token, seen.parent) == (BlockState.ACTIVE, 0, None)
        wait_until(lambda: (tree := slow_client.prefix_tree()) is not None and tree.chains)
        assert prompt[:16] in {chain.text for chain in slow_client.prefix_tree().chains}
        slow_client.cancel(request_id)
        drain_all(slow_client, request_id)
        wait_until(lambda: is_quiet(slow_engine))

    def test_a_pinned_prefix_is_told_and_seen(self, slow_client, slow_engine):
        prompt = "this prefix will be kept in the pool by a pin"
        drain_all(slow_client, slow_client.submit(ask(prompt, max_tokens=1)))
        tokens = tuple(prompt.encode())
        whole = len(tokens) // 16 * 16
        wait_until(lambda: slow_client.residency(tokens) is not None)
        blocks = slow_engine.residency(tokens).blocks
        assert len(blocks) == whole // 16
        assert slow_client.residency(tokens) == Residency(len(tokens), whole, 0, blocks)
        assert slow_client.price(tokens).result(30) == slow_engine.price(tokens)
        pin_id = slow_client.pin(tokens)

        def told(kind):
            events = slow_client.events(0).events
            return [e for e in events if isinstance(e, kind) and e.pin_id == pin_id]

        wait_until(lambda: told(PrefixPinned))
        (event,) = told(PrefixPinned)
        assert (event.tokens, event.blocks) == (len(tokens), whole // 16)
        wait_until(lambda: slow_client.snapshot().blocks.pinned == whole // 16)
        wait_until(lambda: slow_client.blocks(-1).pinned.sum() == whole // 16)
        slow_client.unpin(pin_id)
        wait_until(lambda: told(PrefixUnpinned))
        wait_until(lambda: slow_client.snapshot().blocks.pinned == 0)

    def test_steps_and_the_plan_of_one_are_shown(self, slow_client, slow_engine):
        request_id = slow_client.submit(ask(max_tokens=400))
        plans = []

        def planned():
            plan = slow_client.planned_step()
            if plan is not None and any(row.request_id == request_id for row in plan.rows):
                plans.append(plan)
            return bool(plans)

        wait_until(planned)
        wait_until(lambda: len(slow_client.recent_steps(0)) > 2)
        steps = slow_client.recent_steps(0)
        numbers = [step.number for step in steps]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert slow_client.recent_steps(numbers[-2])[0].number == numbers[-1]
        now = time.monotonic()
        assert all(now - 600 < step.started < now for step in steps)
        slow_client.cancel(request_id)
        drain_all(slow_client, request_id)
        wait_until(lambda: is_quiet(slow_engine))

    def test_events_tell_a_request_from_its_queueing_to_its_finish(self, client, engine):
        request_id = client.submit(ask("a request to be told"))
        drain_all(client, request_id)
        told = []
        at = 0

        def finished():
            nonlocal at
            batch = client.events(at)
            told.extend(e for e in batch.events if getattr(e, "request_id", None) == request_id)
            at = batch.next
            return any(isinstance(event, RequestFinished) for event in told)

        wait_until(finished)
        assert {RequestQueued, RequestScheduled, FirstToken} <= {type(event) for event in told}
        assert client.events(at).events == ()
        now = time.monotonic()
        assert all(now - 60 < event.time <= now for event in told)

    def test_text_and_ids(self, client, engine):
        tokenizer = engine.tokenizer
        for special in (False, True):
            ids = client.tokenize("a<|im_end|>é", special=special)
            assert ids == tokenizer.encode("a<|im_end|>é", special=special)
        for skip_special in (False, True):
            text = client.detokenize(ids, skip_special=skip_special)
            assert text == tokenizer.decode(ids, skip_special=skip_special)
        messages = [{"role": "system", "content": "Rule."}, {"role": "user", "content": "Hi"}]
        for add in (False, True):
            rendered = client.render_chat(messages, add_generation_prompt=add)
            assert rendered == tokenizer.render_chat(messages, add_generation_prompt=add)
        assert client.control_tokens().spellings == tokenizer.control_tokens.spellings
        assert client.tokenizer_fingerprint() == tokenizer.fingerprint

    def test_a_waiting_reader_is_woken(self, client):
        woken = threading.Event()
        client.on_wake(woken.set)
        woken.clear()
        request_id = client.submit(ask())
        assert woken.wait(20)
        drain_all(client, request_id)

    def test_a_fork_goes_on_where_its_parent_is(self, slow_client, slow_engine):
        """The slow engine's requests run until they are cancelled, so the parent is live."""
        request = ask("fork me at this place", max_tokens=400)
        parent = slow_client.submit(request)
        wait_until(lambda: slow_engine.snapshot().running == 1)
        batches = []
        wait_until(lambda: add_batch(slow_client, parent, batches) and len(ids_of(batches)) >= 3)
        sampling = SamplingParams(temperature=0.0, max_tokens=5, ignore_eos=True)
        at = len(request.prompt_ids) + 2
        children = slow_client.fork(parent, at=at, n=2, sampling=sampling)
        assert len(set(children)) == 2
        tokens = (*request.prompt_ids, *ids_of(batches)[:2])
        expected = slow_engine.submit(Request(tokens, sampling)).wait_result(30).token_ids
        for child in children:
            answer = drain_all(slow_client, child)
            assert ids_of(answer) == expected
            assert answer[-1].cached_tokens == at - 1
            assert answer[-1].finish_reason is FinishReason.LENGTH
        slow_client.cancel(parent)
        drain_all(slow_client, parent)
        wait_until(lambda: is_quiet(slow_engine))

    def test_a_child_goes_on_as_its_parent_unless_told_otherwise(self, slow_client, slow_engine):
        request = ask("as my parent", max_tokens=100, temperature=1.0, seed=5, logprobs=1)
        parent = slow_client.submit(request)
        wait_until(lambda: slow_engine.snapshot().running == 1)
        (child,) = slow_client.fork(parent, at=len(request.prompt_ids))
        answer = drain_all(slow_client, child)
        whole = drain_all(slow_client, parent)
        assert len(ids_of(answer)) == len(ids_of(whole)) == 100
        assert answer[-1].seed == child_seed(5, 1)
        assert sum(len(batch.logprobs) for batch in answer) == 100
        assert ids_of(answer) != ids_of(whole)
        wait_until(lambda: is_quiet(slow_engine))

    def test_a_child_keeps_its_parents_grammar_unless_told_otherwise(
        self, slow_client, slow_engine
    ):
        request = ask("x", max_tokens=100, grammar=Grammar.regex("[a-z]{100}"), ignore_eos=False)
        parent = slow_client.submit(request)
        wait_until(lambda: slow_engine.snapshot().running == 1)
        own = {"at": len(request.prompt_ids)}
        digits = replace(request.sampling, grammar=Grammar.regex("[0-9]{3}"))
        free = SamplingParams(temperature=1.0, seed=3, max_tokens=40, ignore_eos=True)
        (kept,) = slow_client.fork(parent, **own)
        (changed,) = slow_client.fork(parent, **own, sampling=digits)
        (unbound,) = slow_client.fork(parent, **own, sampling=free)
        assert set(text_of(drain_all(slow_client, kept))) <= set("abcdefghijklmnopqrstuvwxyz")
        assert text_of(drain_all(slow_client, changed)).isdecimal()
        assert not text_of(drain_all(slow_client, unbound)).isalnum()
        drain_all(slow_client, parent)
        wait_until(lambda: is_quiet(slow_engine))

    @pytest.mark.parametrize(
        ("arguments", "error", "param"),
        [
            ({"at": 0}, InvalidRequest, "at"),
            ({"at": 400}, InvalidRequest, "at"),
            ({"n": 0}, InvalidRequest, "n"),
            ({"request_id": "nobody"}, UnknownRequest, "request_id"),
        ],
    )
    def test_what_cannot_be_forked_is_refused(
        self, slow_client, slow_engine, arguments, error, param
    ):
        parent = slow_client.submit(ask(max_tokens=None))
        wait_until(lambda: slow_engine.snapshot().running == 1)
        with pytest.raises(error) as refused:
            slow_client.fork(**{"request_id": parent} | arguments)
        assert refused.value.param == param
        slow_client.cancel(parent)
        drain_all(slow_client, parent)
        wait_until(lambda: is_quiet(slow_engine))

    def test_price_is_the_engines(self, client, engine):
        # Both transports' tests share an engine, and so what it has cached.
        tokens = tuple(f"{type(client).__name__} says this again and again ".encode() * 3)
        assert client.price(tokens).result(30).prefill_tokens == len(tokens)
        request_id = client.submit(ask(bytes(tokens).decode(), max_tokens=1))
        drain_all(client, request_id)
        quoted = client.price(tokens).result(30)
        assert quoted == engine.price(tokens)
        assert quoted.prefill_tokens < len(tokens)

    def test_a_price_of_nothing_is_refused(self, client):
        with pytest.raises(InvalidRequest):
            client.price(()).result(30)

    def test_a_switch_of_policy_is_in_the_snapshot_and_what_runs_goes_on(self, client, engine):
        before = engine.scheduling
        request = ask(max_tokens=40)
        request_id = client.submit(request)
        wanted = Scheduling("lrs", "timed", 25.0)
        try:
            client.set_scheduling(wanted)
            wait_until(lambda: client.snapshot().scheduling == wanted)
            batches = drain_all(client, request_id)
            assert ids_of(batches) == engine.submit(ask(max_tokens=40)).wait_result(30).token_ids
        finally:
            client.set_scheduling(before)

    def test_a_policy_that_is_none_is_refused(self, client):
        with pytest.raises(InvalidRequest, match="fcfs, priority, sjf, edf, lrs"):
            client.set_scheduling(Scheduling("fastest"))
        with pytest.raises(InvalidRequest, match="step_target_ms"):
            client.set_scheduling(Scheduling(step_target_ms=0))

    def test_deadlines_are_carried_and_counted(self, client, engine):
        before = engine.snapshot().totals
        request = replace(ask(max_tokens=1), priority=-2, deadline_ms=86_400_000.0)
        drain_all(client, client.submit(request))
        drain_all(client, client.submit(replace(ask(max_tokens=1), deadline_ms=1e-6)))
        after = engine.snapshot().totals
        assert after.deadlines_met == before.deadlines_met + 1
        assert after.deadlines_missed == before.deadlines_missed + 1
        for wrong in ({"priority": 2**31}, {"deadline_ms": 0.0}):
            with pytest.raises(InvalidRequest, match=next(iter(wrong))):
                client.submit(replace(ask(), **wrong))

    def test_predicted_step_times_are_in_the_snapshot(self, client):
        drain_all(client, client.submit(ask()))
        wait_until(lambda: client.snapshot().step_costs is not None)
        snapshot = client.snapshot()
        assert snapshot.last_step.predicted_seconds > 0
        assert snapshot.totals.measured_seconds > 0
        assert snapshot.step_costs.constant >= 0

    def test_batches_tell_what_was_cached(self, client):
        text = f"{type(client).__name__} begins the same, for more than a block; "
        drain_all(client, client.submit(ask(text, max_tokens=1)))
        batches = drain_all(client, client.submit(ask(text + "and an end", max_tokens=1)))
        assert 16 <= batches[-1].cached_tokens <= len(text)

    def test_a_cache_salt_separates_what_is_cached(self, client):
        text = f"{type(client).__name__}: the same text under each salt"
        cached = []
        for salt in ("one", "two", None, "one"):
            request = replace(ask(text, max_tokens=1), cache_salt=salt)
            cached.append(drain_all(client, client.submit(request))[-1].cached_tokens)
        assert cached[:3] == [0, 0, 0]
        assert cached[3] >= 16

    def test_a_continued_answer_goes_on_as_if_it_had_not_stopped(self, client):
        sampling = {"max_tokens": 12, "frequency_penalty": 1.5, "presence_penalty": 0.5}
        first = drain_all(client, client.submit(ask("go on, and on", **sampling)))
        ids = tuple(token for batch in first for token in batch.token_ids)
        text = "".join(batch.text for batch in first)
        for kept in (1, 5, 11):
            request = ask("go on, and on", **{**sampling, "max_tokens": 12 - kept})
            prompt = request.prompt_ids + ids[:kept]
            batches = drain_all(
                client, client.submit(replace(request, prompt_ids=prompt, continued_tokens=kept))
            )
            assert ids[kept:] == tuple(token for batch in batches for token in batch.token_ids)
            begun = "".join(client.token_texts(ids)[:kept])
            assert begun + "".join(batch.text for batch in batches) == text

    @pytest.mark.parametrize("count", [-1, 6, 2**40])
    def test_a_continued_answer_needs_a_prompt(self, client, count):
        request = ask("hello", max_tokens=1)
        prompt = request.prompt_ids[:6]
        with pytest.raises(InvalidRequest, match="continued_tokens"):
            client.submit(replace(request, prompt_ids=prompt, continued_tokens=count))

    @pytest.mark.parametrize("text", ["", "plain", "naïve 日本 👨‍👩‍👧 प्रवाह"])
    def test_the_texts_of_tokens_add_up(self, client, text):
        ids = client.tokenize(text)
        texts = client.token_texts(ids)
        assert len(texts) == len(ids)
        assert "".join(texts) == client.detokenize(ids) == text
