import pytest
from after.queue_store import JobQueue


@pytest.mark.parametrize("count", [1])
def test_put(count):
    assert JobQueue().put("a", owner="b") == count


@pytest.mark.xfail
def test_take_of_an_empty_queue():
    assert JobQueue().take() is None


def test_full():
    with pytest.raises(Exception):
        JobQueue(0).put("a", owner="b")
