import pytest

from levels import status
from ring import RingLog


@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
@pytest.mark.parametrize("written", range(14))
def test_like_a_list(capacity, written):
    log = RingLog(capacity)
    lines = [f"INFO {number}" for number in range(written)]
    for line in lines:
        log.write(line)
    kept = lines[-capacity:]
    assert list(log) == kept
    assert len(log) == len(kept)
    assert log.num_dropped == max(0, written - capacity)
    for count in range(7):
        assert log.tail(count) == (kept[-count:] if count else [])


def test_status():
    log = RingLog(1)
    log.write("ERROR x")
    log.write("DEBUG y")
    assert status(log) == "1 lines, worst DEBUG, 1 older lines dropped"
