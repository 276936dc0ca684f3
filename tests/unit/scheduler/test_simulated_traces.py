"""The simulator, and what it is there to show: policies against arrival traces in virtual time."""

from functools import cache

import pytest

from benchmarks.simulate import STORED, Simulation, make_trace, simulate, table
from benchmarks.traces import TRACES
from engine.api.scheduling import BATCH_FORMERS, POLICIES, Scheduling


@cache
def arrivals(trace, load=1.5):
    return make_trace(trace, load=load, seconds=40.0, costs=STORED, seed=7)


@cache
def outcome(trace, policy, former="fixed", load=1.5):
    return simulate(arrivals(trace, load), Scheduling(policy, former, 80.0))


@pytest.mark.parametrize("former", BATCH_FORMERS)
@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("policy", ["edf", "lrs"])
def test_deadline_policies_meet_more_deadlines_under_overload(policy, trace, former):
    first_come = outcome(trace, "fcfs", former).ttft_met
    assert outcome(trace, policy, former).ttft_met > 1.3 * first_come + 0.03


@pytest.mark.parametrize("policy", POLICIES)
def test_with_room_for_all_no_policy_harms(policy):
    easy = [outcome("poisson", one, load=0.3) for one in (policy, "fcfs")]
    assert easy[0].ttft_met >= easy[1].ttft_met - 0.05


def test_timed_steps_bound_the_time_between_tokens():
    fixed, timed = (outcome("poisson", "edf", former) for former in ("fixed", "timed"))
    assert timed.itl_p99 < 2 * 0.080 < fixed.itl_p99
    assert timed.done_met > fixed.done_met


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_request_is_served_in_the_end(policy, trace):
    simulation = Simulation(Scheduling(policy), STORED, seed=1)
    played = simulation.run(arrivals(trace))
    for one, sequence in zip(arrivals(trace), played, strict=True):
        assert len(sequence.mailbox.kept.ids) == one.answer
    assert simulation.blocks.num_free == simulation.blocks.num_blocks


def test_a_run_is_exact():
    again = simulate(arrivals("poisson"), Scheduling("lrs"))
    assert again == outcome("poisson", "lrs")


def test_agents_share_their_prefixes():
    assert outcome("shared-prefix", "fcfs").prefix_hits > 0.5
    assert outcome("poisson", "fcfs").prefix_hits < 0.1


def test_the_table_has_a_cell_for_each_column():
    lines = table([outcome("poisson", "edf")]).splitlines()
    assert len({line.count("|") for line in lines}) == 1
