import pytest
from before.queue_store import JobQueue


@pytest.mark.parametrize("count", [1, 2, 50])
def test_drain_returns_all(count):
    queue = JobQueue()
    for number in range(count):
        queue.put(str(number))
    assert queue.drain() == [str(number) for number in range(count)]


def test_take_of_an_empty_queue():
    assert JobQueue().take() is None


def test_full():
    with pytest.raises(OverflowError):
        JobQueue(0).put("a")
