"""The order of admission under each policy, on the toy pipeline with a manual clock."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine._core import BlockAllocator
from engine.api.events import RequestPreempted
from engine.api.scheduling import POLICIES, Scheduling
from engine.scheduler.ordering import AGEING_AFTER_S, AGEING_PERIOD, Ranking
from engine.scheduler.policies import make_prioritiser
from engine.scheduler.policies.deadlines import DEFAULT_DEADLINE_S
from engine.scheduler.work_predictor import WorkPredictor
from tests.fakes.timed_pipeline import TimedPipeline, ask, teach
from tests.fakes.toy_executor import oracle
from tests.fakes.toy_pipeline import ToyPipeline


def test_the_lowest_priority_goes_first_and_equals_by_arrival():
    toy = TimedPipeline("priority", rows=1)
    order = toy.names(
        low=ask(priority=5), first=ask(), second=ask(), urgent=ask(priority=-3), third=ask()
    )
    assert order == ["urgent", "first", "second", "third", "low"]


def test_among_equal_priorities_the_longer_cached_prefix_goes_first():
    toy = TimedPipeline("priority", rows=1, allocator=BlockAllocator)
    cold, warm = ask(16, 1), ask(16, 30)
    later = ask(16, 60, priority=1)
    sequences = [(cold, 0), (warm, 12), (later, 16)]
    for request, cached in sequences:
        toy.submit(request)
        sequence = toy.sequences[request.request_id]
        toy.waiting.remove(sequence)
        sequence.record["cached_tokens_hint"] = cached  # as the engine notes at submission
        toy.waiting.requeue(sequence)
    toy.run()
    assert toy.admitted == [one.request_id for one in (warm, cold, later)]


@pytest.mark.parametrize("fitted", [False, True], ids=["before the model is fitted", "after"])
def test_the_shortest_job_goes_first_prompt_and_answer_counted(fitted):
    toy = TimedPipeline("sjf", rows=1, fitted=fitted)
    order = toy.names(
        long_prompt=ask(60, max_tokens=2),
        long_answer=ask(4, max_tokens=90),
        short=ask(4, max_tokens=2),
        middling=ask(8, max_tokens=2),
    )
    assert order[:2] == ["short", "middling"]


def test_an_answer_without_a_limit_is_estimated_at_the_mean_length():
    work = WorkPredictor(chunk=32)
    for _ in range(200):
        work.note_output_length(5)
    toy = TimedPipeline("sjf", rows=1)
    toy.pipeline.scheduler.work.mean_output_tokens = work.mean_output_tokens
    open_end = ask(4, max_tokens=None)
    assert toy.names(bounded=ask(4, max_tokens=90, start=7), open_end=open_end) == [
        "bounded",
        "open_end",
    ]  # both are estimated at five tokens, so arrival decides
    assert work.mean_output_tokens == pytest.approx(5, rel=0.05)


def test_19_the_earliest_deadline_goes_first():
    toy = TimedPipeline("edf", rows=1)
    order = toy.names(
        none=ask(),
        late=ask(deadline_ms=9000),
        soon=ask(deadline_ms=2000),
        mid=ask(deadline_ms=5000),
    )
    assert order == ["soon", "mid", "late", "none"]


def test_19_a_request_without_a_deadline_has_a_default_one():
    """A request without a deadline is not behind every request that has one."""
    toy = TimedPipeline("edf", rows=1)
    toy.submit(ask(max_tokens=1))
    patient = ask()
    toy.submit(patient)
    toy.step()
    toy.clock.now += DEFAULT_DEADLINE_S - 5
    later = ask(deadline_ms=6000)
    toy.submit(later)
    toy.run()
    assert toy.admitted[1:] == [patient.request_id, later.request_id]


def test_least_slack_counts_the_work_before_the_deadline():
    """Earliest deadline first would take `near`; `much` cannot wait for it."""
    requests = {
        "near": ask(4, max_tokens=1, deadline_ms=900),
        "much": ask(200, max_tokens=1, deadline_ms=1000),  # some 0.27 s of prefill
    }
    assert TimedPipeline("edf", rows=1).names(**requests) == ["near", "much"]
    assert TimedPipeline("lrs", rows=1).names(**requests) == ["much", "near"]


def test_19_least_slack_is_relative_to_the_time_allowed():
    toy = TimedPipeline("lrs", rows=1)
    early = ask(start=5, deadline_ms=20_000)
    toy.submit(early)
    toy.clock.now += 19.0  # a twentieth of its time is left
    fresh = ask(start=9, deadline_ms=900)  # nearer, with all of its time left
    toy.submit(fresh)
    toy.run()
    assert toy.admitted == [early.request_id, fresh.request_id]


@pytest.mark.parametrize("policy", ["edf", "lrs"])
def test_19_a_missed_deadline_delays_no_request_that_can_meet_its_own(policy):
    """Requests that cannot meet their deadline are ordered last and still served."""
    toy = TimedPipeline(policy, rows=1)
    lost, hopeless = ask(start=3, deadline_ms=50), ask(100, start=5, deadline_ms=100)
    toy.submit(lost)
    toy.clock.now += 1
    toy.submit(hopeless)  # its prefill alone takes longer than it has
    fine = [ask(start=20 + i, deadline_ms=1000 * (i + 1)) for i in range(4)]
    for request in reversed(fine):
        toy.submit(request)
    toy.run()
    assert toy.admitted == [one.request_id for one in (*fine, lost, hopeless)]
    totals = toy.counters.totals()
    assert (totals.deadlines_met, totals.deadlines_missed) == (4, 2)


@pytest.mark.parametrize(("error", "order"), [(0.1, ["fine", "tight"]), (0.8, ["tight", "fine"])])
def test_19_a_deadline_is_given_up_later_where_predictions_are_poor(error, order):
    toy = TimedPipeline("edf", rows=1)
    toy.pipeline.scheduler.work.model.error = error
    requests = {"fine": ask(deadline_ms=900), "tight": ask(100, start=5, deadline_ms=100)}
    assert toy.names(**requests) == order  # some 0.14 s of prefill for `tight`


def test_no_deadline_is_given_up_before_step_times_are_measured():
    """Before step times are measured, only a deadline that has passed counts as missed."""
    toy = TimedPipeline("edf", rows=1, fitted=False)
    assert toy.names(later=ask(deadline_ms=100), tight=ask(200, deadline_ms=1)) == [
        "tight",
        "later",
    ]


@pytest.mark.parametrize("policy", [one for one in POLICIES if one != "fcfs"])
def test_19_starvation_is_bounded(policy):
    """While higher-ranked requests keep arriving, the lowest-ranked one is admitted by age."""
    toy = TimedPipeline(policy, rows=1)
    starved = ask(30, max_tokens=40, priority=9, deadline_ms=1)  # worst under every policy
    toy.submit(ask(max_tokens=1))
    toy.submit(starved)
    ahead = 0
    while starved.request_id not in toy.admitted:
        while len(toy.waiting) < 3:
            toy.submit(ask(4, max_tokens=2, priority=-1, deadline_ms=60_000))
        toy.step()
        toy.clock.now += 0.5
        ahead += 1
        assert ahead < 1000, "starved"
    waited = toy.clock.now - toy.sequences[starved.request_id].queued_at
    assert waited >= AGEING_AFTER_S
    by_then = toy.admitted.index(starved.request_id)
    before = sum(1 for one in toy.admitted[:by_then] if toy.sequences[one].queued_at < 110)
    assert by_then - before <= 2 * AGEING_PERIOD


@pytest.mark.parametrize("policy", POLICIES)
def test_the_lowest_ranked_request_is_preempted(policy):
    toy = TimedPipeline(policy, blocks=12, block_size=4)
    victims = []
    toy.events.subscribe(RequestPreempted, lambda event: victims.append(event.request_id))
    requests = [
        ask(6, start, max_tokens=24, priority=4 - start, deadline_ms=20_000) for start in range(4)
    ]
    handles = [toy.submit(request) for request in requests]
    toy.run()
    assert victims
    worst = requests[0] if policy == "priority" else requests[-1]
    assert victims[0] == worst.request_id
    for request, handle in zip(requests, handles, strict=True):
        assert handle.drain().token_ids == oracle(request)


@pytest.mark.parametrize("policy", ["edf", "lrs"])
def test_a_decoding_request_is_not_preempted_for_a_prefill(policy):
    toy = TimedPipeline(policy, blocks=12, block_size=4, budget=8)
    victims = []
    toy.events.subscribe(RequestPreempted, lambda event: victims.append(event.request_id))
    answering = ask(6, 1, max_tokens=40)
    toy.submit(answering)
    toy.step(2)
    for start in (2, 3):
        toy.submit(ask(8, start, max_tokens=20, deadline_ms=3000))
    toy.run()
    assert victims
    assert answering.request_id not in victims


def test_switching_the_policy_reorders_waiting_requests_and_loses_none():
    toy = TimedPipeline("fcfs", rows=2)
    requests = [
        ask(3 + i, i, max_tokens=5, priority=-i, deadline_ms=30_000 - 1000 * i) for i in range(24)
    ]
    handles = [toy.submit(request) for request in requests]
    for policy in (*POLICIES, "priority"):
        toy.pipeline.scheduler.switch(Scheduling(policy=policy))
        toy.step(7)
    left = [one for one in requests if toy.sequences[one.request_id].queue_index >= 0]
    seen = len(toy.admitted)
    toy.run()
    assert len(left) > 4
    assert toy.admitted[seen:] == [one.request_id for one in reversed(left)]
    for request, handle in zip(requests, handles, strict=True):
        assert handle.drain().token_ids == oracle(request)
    toy.assert_idle()


REQUESTS = st.lists(
    st.tuples(
        st.integers(1, 14),
        st.integers(1, 12),
        st.integers(-2, 2),
        st.none() | st.floats(1, 5000),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=60)
@given(requests=REQUESTS, policies=st.lists(st.sampled_from(POLICIES), min_size=1, max_size=4))
def test_every_policy_gives_the_same_answers(requests, policies):
    """No livelock in a small pool under any policy and any number of switches."""
    toy = TimedPipeline(policies[0], blocks=8, block_size=4, budget=9, rows=3, fitted=False)
    asked, handles = [], []
    for number, (length, tokens, priority, deadline_ms, pause) in enumerate(requests):
        request = ask(length, number, max_tokens=tokens, priority=priority, deadline_ms=deadline_ms)
        asked.append(request)
        handles.append(toy.submit(request))
        toy.step(pause)
        policy = policies[number % len(policies)]
        toy.pipeline.scheduler.switch(Scheduling(policy, ("fixed", "timed")[number % 2], 15.0))
    toy.run(limit=2000)
    toy.assert_idle()
    for request, handle in zip(asked, handles, strict=True):
        assert handle.drain().token_ids == oracle(request)


def naive_order(policy, work, sequences, now):
    """Each policy's definition, one request at a time."""

    def first_token_s(one):
        costs = work.model.costs
        prefill = len(one.tokens)
        steps = -(-prefill // 32)
        own = prefill * (costs.prefill_token + costs.kv_token * prefill / 2)
        return own + steps * costs.constant

    def key(one):
        request = one.request
        deadline_s = float("inf") if request.deadline_ms is None else request.deadline_ms / 1000
        allowed = min(deadline_s, DEFAULT_DEADLINE_S)
        left = one.queued_at + allowed - now
        lost = left < first_token_s(one) / (1 + work.model.error)
        slack = left - first_token_s(one)
        return {
            "fcfs": (one.arrival,),
            "priority": (request.priority, one.arrival),
            "edf": (lost, one.arrival if lost else one.queued_at + allowed, one.arrival),
            "lrs": (lost, one.arrival if lost else slack / allowed, one.arrival),
        }[policy]

    return sorted(sequences, key=key)


@settings(max_examples=100)
@given(data=st.data(), policy=st.sampled_from(["fcfs", "priority", "edf", "lrs"]))
def test_picks_match_a_plain_sort(data, policy):
    toy = ToyPipeline()
    work = WorkPredictor(chunk=32)
    teach(work)
    for length, _, priority, deadline_ms, pause in data.draw(REQUESTS):
        toy.submit(ask(length, priority=priority, deadline_ms=deadline_ms))
        toy.clock.now += pause
    now = toy.clock.now
    expected = naive_order(policy, work, list(toy.waiting), now)
    ranking = Ranking(make_prioritiser(policy, work))
    picked = [toy.waiting.pop(ranking.pick(toy.waiting, now)) for _ in range(len(toy.waiting))]
    assert [one.arrival for one in picked] == [one.arrival for one in expected]
