from orgchart.chart import chain, earns_more_than_leader
from orgchart.staff import Employee, Staff


def test_several_heads():
    staff = Staff(
        [Employee("a", None, 10), Employee("b", None, 99), Employee("c", "a", 11), Employee("d", "c", 11),
         Employee("e", "b", 100)]
    )
    assert earns_more_than_leader(staff) == ["c", "e"]
    assert chain(staff, "d") == ["c", "a"]


def test_only_heads():
    assert earns_more_than_leader(Staff([Employee("a", None, 1)])) == []
    assert earns_more_than_leader(Staff([])) == []


def test_equal_is_not_more():
    staff = Staff([Employee("a", None, 10), Employee("b", "a", 10)])
    assert earns_more_than_leader(staff) == []
