"""The scheduling policies, one a file, and `make_prioritiser`, which finds one by name."""

from engine.pipeline.policies.earliest_deadline import EarliestDeadlineFirst
from engine.pipeline.policies.first_come import FirstComeFirstServed
from engine.pipeline.policies.least_slack import LeastRemainingSlack
from engine.pipeline.policies.priority import PriorityOrder
from engine.pipeline.policies.shortest_job import ShortestJobFirst
from engine.pipeline.prioritiser import Prioritiser
from engine.pipeline.work import WorkPredictor
from engine.scheduling import Policy


def make_prioritiser(policy: Policy, work: WorkPredictor) -> Prioritiser:
    """The policy of that name, which predicts with `work`."""
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
