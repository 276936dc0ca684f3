from worker.jobs import Fatal, Job
from worker.runner import Runner


def failing(times, then="ok"):
    left = [times]

    def work():
        if left[0]:
            left[0] -= 1
            raise OSError("busy")
        return then

    return work


def test_done():
    runner = Runner()
    job = Job("a", lambda: 7)
    runner.add(job)
    runner.run()
    assert (job.state, job.result, job.attempts) == ("done", 7, 1)


def test_a_second_attempt():
    runner = Runner()
    job = Job("a", failing(2))
    runner.add(job)
    runner.run()
    assert (job.state, job.attempts, job.error) == ("done", 3, "")


def test_too_many_failures():
    runner = Runner(max_attempts=2)
    job = Job("a", failing(9))
    runner.add(job)
    runner.run()
    assert (job.state, job.attempts, job.error) == ("failed", 2, "busy")


def test_fatal_ends_at_once():
    def work():
        raise Fatal("no such table")

    runner = Runner()
    job = Job("a", work)
    runner.add(job)
    runner.run()
    assert (job.state, job.attempts, job.error) == ("failed", 1, "no such table")


def test_summary():
    runner = Runner(1)
    runner.add(Job("a", failing(1)))
    runner.add(Job("b", failing(0)))
    runner.run()
    assert runner.summary() == {"failed": 1, "done": 1}
