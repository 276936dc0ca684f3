"""Running jobs, with some attempts for each."""

from collections import deque

from worker.jobs import Fatal, Job


class Runner:
    def __init__(self, max_attempts: int = 3) -> None:
        self.max_attempts = max_attempts
        self.waiting: deque[Job] = deque()
        self.finished: list[Job] = []

    def add(self, job: Job) -> None:
        self.waiting.append(job)

    def run(self) -> None:
        """Run until nothing waits. A job that fails waits again behind the others."""
        while self.waiting:
            job = self.waiting.popleft()
            if self.attempt(job):
                self.finished.append(job)
            else:
                self.waiting.append(job)

    def attempt(self, job: Job) -> bool:
        """Try a job once; whether it is finished, well or not."""
        job.attempts += 1
        job.state = "running"
        try:
            job.result = job.work()
        except Fatal as error:
            job.error = str(error)
            job.state = "failed"
            return True
        except Exception as error:
            job.error = str(error)
            job.state = "waiting"
            if job.attempts >= self.max_attempts:
                job.state = "failed"
                return True
            return False
        job.state = "done"
        job.error = ""
        return True

    def summary(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for job in [*self.finished, *self.waiting]:
            counts[job.state] = counts.get(job.state, 0) + 1
        return counts
