import pytest

from orgchart.chart import chain, common_leader, cost, earns_more_than_leader, level
from orgchart.staff import Employee, Staff


@pytest.fixture
def staff():
    return Staff(
        [
            Employee("ada", None, 90),
            Employee("bo", "ada", 60),
            Employee("cy", "bo", 70),
            Employee("di", "ada", 50),
        ]
    )


def test_chain(staff):
    assert chain(staff, "cy") == ["bo", "ada"]
    assert chain(staff, "ada") == []


def test_level(staff):
    assert [level(staff, name) for name in ("ada", "di", "cy")] == [0, 1, 2]


def test_common_leader(staff):
    assert common_leader(staff, "cy", "di") == "ada"
    assert common_leader(staff, "ada", "di") is None


def test_cost(staff):
    assert cost(staff, "ada") == 270
    assert cost(staff, "bo") == 130


def test_earns_more(staff):
    assert earns_more_than_leader(staff) == ["cy"]
