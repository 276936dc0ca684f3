import pytest

from mixing.plan import check, parts


@pytest.mark.parametrize("weak", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("strong", [8.0, 10.0, 50.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_parts(strong, weak, share):
    wanted = weak + share * (strong - weak)
    wanted = min(max(wanted, weak), strong)
    assert parts(strong, weak, wanted) == pytest.approx((share, 1 - share), abs=1e-9)
    assert check(strong, weak, wanted, 120)


def test_borders():
    assert parts(5, 5, 5) == (1.0, 0.0)
    for wanted in (1, 11):
        with pytest.raises(ValueError):
            parts(10, 2, wanted)
