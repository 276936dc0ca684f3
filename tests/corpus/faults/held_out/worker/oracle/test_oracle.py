import pytest

from worker.jobs import Fatal, Job
from worker.runner import Runner


class Worse(Fatal):
    pass


@pytest.mark.parametrize("kind", [Fatal, Worse])
@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_fatal(kind, attempts):
    def work():
        raise kind("gone")

    runner = Runner(attempts)
    job = Job("a", work)
    runner.add(job)
    runner.run()
    assert (job.state, job.attempts, job.error) == ("failed", 1, "gone")


@pytest.mark.parametrize("kind", [ValueError, KeyError, OSError, RuntimeError])
def test_others_are_tried_again(kind):
    def work():
        raise kind("x")

    job = Job("a", work)
    runner = Runner(4)
    assert runner.attempt(job) is False
    assert job.state == "waiting"
    runner.add(job)
    runner.run()
    assert (job.state, job.attempts) == ("failed", 4)
