"""A queue of jobs."""

from collections import deque


class JobQueue:
    """Jobs in the order of their arrival."""

    def __init__(self, limit: int = 100) -> None:
        self._limit = limit
        self._jobs: deque[str] = deque()

    def put(self, job: str, *, urgent: bool = False) -> int:
        """Add a job; raise OverflowError when the queue is full."""
        if len(self._jobs) >= self._limit:
            raise OverflowError(self._limit)
        if urgent:
            self._jobs.appendleft(job)
        else:
            self._jobs.append(job)
        return len(self._jobs)

    def take(self) -> str | None:
        """Return the next job, or None."""
        return self._jobs.popleft() if self._jobs else None

    def drain(self) -> list[str]:
        """Return all jobs and empty the queue."""
        jobs = list(self._jobs)
        self._jobs.clear()
        return jobs

    def _check(self) -> bool:
        return len(self._jobs) <= self._limit
