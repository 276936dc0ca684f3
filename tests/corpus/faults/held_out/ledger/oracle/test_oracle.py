from ledger.entries import Entry, parse
from ledger.reports import by_month, by_partner, matching


def test_rows():
    text = "01.01.2024;05.02.2024; A ; b c ;-1,5\n09.12.2023;02.01.2024;D;e;10,00\n"
    assert parse(text) == [Entry("01.01.2024", "A", "b c", -150), Entry("09.12.2023", "D", "e", 1000)]
    assert by_month(parse(text)) == {"2023-12": 1000, "2024-01": -150}
    assert by_partner(parse(text)) == [("A", 150)]
    assert matching(parse(text), "d") == []
    assert parse("") == []
