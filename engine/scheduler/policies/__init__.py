"""The scheduling policies, one per file, and `make_prioritiser`, which creates one by name."""

from engine.api.scheduling import Policy
from engine.scheduler.ordering import Prioritiser
from engine.scheduler.policies.earliest_deadline import EarliestDeadlineFirst
from engine.scheduler.policies.first_come import FirstComeFirstServed
from engine.scheduler.policies.least_slack import LeastRemainingSlack
from engine.scheduler.policies.priority import PriorityOrder
from engine.scheduler.policies.shortest_job import ShortestJobFirst
from engine.scheduler.work_predictor import WorkPredictor


def make_prioritiser(policy: Policy, work: WorkPredictor) -> Prioritiser:
    """Create a policy.

    Args:
        policy: its name.
        work: predicts durations; used by `sjf`, `edf` and `lrs`.
    """
    match policy:
        case "fcfs":
            return FirstComeFirstServed()
        case "priority":
            return PriorityOrder()
        case "sjf":
            return ShortestJobFirst(work)
        case "edf":
            return EarliestDeadlineFirst(work)
        case "lrs":
            return LeastRemainingSlack(work)
