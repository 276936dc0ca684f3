from ledger.entries import Entry, parse, to_cents
from ledger.reports import balance, by_month, by_partner, matching

TABLE = """31.03.2025;01.04.2025;Energy Ltd;March bill;-80,00
02.04.2025;02.04.2025;Employer;salary;2.000,5
03.04.2025;03.04.2025;Bakery;bread;-3,20
"""


def test_to_cents():
    assert to_cents("-1.234,50") == -123450
    assert to_cents("7") == 700


def test_parse():
    assert parse(TABLE)[0] == Entry("31.03.2025", "Energy Ltd", "March bill", -8000)


def test_balance():
    assert balance(parse(TABLE), 100) == 100 - 8000 + 200050 - 320


def test_months():
    assert by_month(parse(TABLE)) == {"2025-03": -8000, "2025-04": 199730}


def test_partners():
    assert by_partner(parse(TABLE)) == [("Energy Ltd", 8000), ("Bakery", 320)]


def test_matching():
    assert [entry.partner for entry in matching(parse(TABLE), "BILL")] == ["Energy Ltd"]
