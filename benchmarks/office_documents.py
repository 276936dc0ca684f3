"""Twenty-four office documents of an invented company, for `office_questions.py`.

    pip install openpyxl python-docx python-pptx odfpy
    python benchmarks/office_documents.py DIR

Spreadsheets have number formats, dates, times and empty cells; Word files tables, page headers and
non-breaking hyphens; mails HTML bodies beside plain parts; pages accordions and tables. Every fact
is in one document, and nothing of it exists elsewhere, so that a model cannot know it.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time
from email.message import EmailMessage
from pathlib import Path
from typing import Any

Row = Sequence[Any]

SUPPLIERS: Sequence[Row] = (
    ("Supplier", "Contract ends", "Annual volume", "Discount", "Contact"),
    ("Brandal Timber", date(2027, 3, 31), 48250, 0.15, "Ilse Moen"),
    ("Tesla Bakery", date(2026, 12, 31), 3300.5, None, None),
    ("Korvik Steel", date(2028, 6, 30), 412000, 0.075, "Pavel Dusek"),
    ("Lumen Glass", date(2026, 9, 15), 27999.9, 0.02, "Ada Quist"),
    ("Northfall Paper", None, 8120, 0.1, "Tomas Rehn"),
    ("Sandoval Paints", date(2027, 11, 1), 15430.25, 0.055, None),
)
HOURS: Sequence[Row] = (
    ("Branch", "Opens", "Closes", "Closed on", "Manager"),
    ("Harbour Street", time(7, 45), time(18, 30), "Sunday", "Greta Lund"),
    ("Mill Lane", time(9, 0), time(17, 15), "Monday", "Owen Pratt"),
    ("Old Town", time(10, 30), time(21, 0), None, "Signe Aas"),
    ("Airport", time(5, 15), time(23, 45), None, "Rui Matos"),
)
INVOICES: Sequence[Row] = (
    ("Invoice", "Customer", "Issued", "Due", "Amount", "Paid"),
    ("R-2041", "Aster Clinic", date(2026, 5, 4), date(2026, 6, 3), 1289.5, True),
    ("R-2042", "Bolund School", date(2026, 5, 6), date(2026, 6, 5), 742, False),
    ("R-2043", "Café Mirador", date(2026, 5, 11), date(2026, 6, 10), 96.4, True),
    ("R-2044", "Aster Clinic", date(2026, 5, 19), date(2026, 7, 18), 15320.75, False),
    ("R-2045", "Dovre Hotel", date(2026, 5, 28), date(2026, 6, 27), 4410, True),
)
FLEET: Sequence[Row] = (
    ("Plate", "Model", "Next inspection", "Mileage", "Driver"),
    ("PV 31 204", "Transporter", date(2026, 8, 21), 84210, "Hana Novak"),
    ("PV 31 377", "Kangoo", date(2027, 1, 12), 12904, None),
    ("PV 40 118", "Sprinter", date(2026, 7, 3), 201338, "Luis Ferrer"),
)
TRIPS: Sequence[Row] = (
    ("Trip", "Plate", "Day", "Distance"),
    ("Depot to Varberg", "PV 40 118", date(2026, 6, 2), 412.5),
    ("Depot to Halden", "PV 31 204", date(2026, 6, 4), 96),
)
SENSORS: Sequence[Row] = (
    ("Sensor", "Limit", "Last reading", "Tolerance", "Alarm"),
    ("Cold room A", 4, 1.1000000000000001, 0.05, False),
    ("Cold room B", 4, 5.3, 0.05, True),
    ("Server room", 27, 22.799999999999997, 0.025, False),
)
BUDGET: Sequence[Row] = (
    ("Department", "Q1", "Q2", "Q3", "Q4", "Growth"),
    ("Logistics", 120000, 118500, 131250, 140000, 0.082),
    ("Research", 86000, 91000, None, 97500, -0.034),
    ("Catering", 23400, 23400, 25100, 26000, 0.11),
)
SHIFTS: Sequence[Row] = (
    ("Week starting", "Early shift", "Late shift", "On call"),
    (date(2026, 6, 1), "Amira", "Jonas", "Petra"),
    (date(2026, 6, 8), "Jonas", "Petra", "Amira"),
    (date(2026, 6, 15), "Petra", "Amira", "Bodil"),
)
PARTS = ("Bearing", "Gasket", "Filter", "Nozzle", "Valve", "Spring", "Coupling", "Seal")
"""Of the inventory, which is long enough for several passages."""


def main() -> None:
    """Write the documents into the folder of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    write_documents(parser.parse_args().folder)


def write_documents(folder: Path) -> list[Path]:
    """Write all documents; the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    makers: Mapping[str, Callable[[Path], None]] = {
        "suppliers.xlsx": _suppliers,
        "opening_hours.xlsx": _hours,
        "invoices_may.xlsx": _invoices,
        "inventory.xlsx": _inventory,
        "fleet.xlsx": _fleet,
        "sensors.xlsx": _sensors,
        "budget_2026.xlsx": _budget,
        "shifts.ods": _shifts,
        "press_manual.docx": _press_manual,
        "travel_policy.docx": _travel_policy,
        "minutes_2026-05.docx": _minutes,
        "lease.docx": _lease,
        "onboarding.docx": _onboarding,
        "safety_rules.odt": _safety,
        "warranty.docx": _warranty,
        "roadmap.pptx": _roadmap,
        "quarterly.pptx": _quarterly,
        "training.pptx": _training,
        "delivery_delay.eml": _delivery_delay,
        "site_visit.eml": _site_visit,
        "forwarded_offer.eml": _forwarded_offer,
        "newsletter.eml": _newsletter,
        "support_faq.html": _faq,
        "tariffs.html": _tariffs,
    }
    for name, make in makers.items():
        make(folder / name)
    return [folder / name for name in makers]


# Spreadsheets.


def _workbook(path: Path, sheets: Mapping[str, Sequence[Row]], formats: Mapping[str, str]) -> None:
    """`formats`: number format of the cells below a heading."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
        for column, heading in enumerate(rows[0], 1):
            if heading in formats:
                for number in range(2, len(rows) + 1):
                    sheet.cell(number, column).number_format = formats[heading]
    book.save(path)


def _suppliers(path: Path) -> None:
    formats = {"Contract ends": "dd/mm/yyyy", "Annual volume": '#,##0.00 "EUR"', "Discount": "0.0%"}
    _workbook(path, {"Suppliers": SUPPLIERS}, formats)


def _hours(path: Path) -> None:
    _workbook(path, {"Opening hours": HOURS}, {"Opens": "hh:mm", "Closes": "hh:mm"})


def _invoices(path: Path) -> None:
    formats = {"Issued": "d mmm yyyy", "Due": "d mmm yyyy", "Amount": "#,##0.00\\ [$€-1]"}
    _workbook(path, {"May": INVOICES}, formats)


def _inventory(path: Path) -> None:
    rows: list[Row] = [("Item", "Shelf", "Minimum", "In stock", "Last counted", "Remark")]
    for number in range(96):
        name = f"{PARTS[number % 8]} {20 + number}"
        shelf = f"{'ABCDEF'[number % 6]}{number // 6 + 1}"
        stock = (number * 37) % 83
        remark = "reorder now" if number == 70 else None
        counted = date(2026, 1 + number % 5, 1 + number % 27)
        rows.append((name, shelf, 5 + number % 9, stock, counted, remark))
    _workbook(path, {"Stock": rows}, {"Last counted": "yyyy-mm-dd"})


def _fleet(path: Path) -> None:
    formats = {"Next inspection": "dd.mm.yyyy", "Day": "dd.mm.yyyy", "Mileage": "#,##0"}
    _workbook(path, {"Vehicles": FLEET, "Trips": TRIPS}, formats)


def _sensors(path: Path) -> None:
    _workbook(path, {"Sensors": SENSORS}, {"Tolerance": "0.0%"})


def _budget(path: Path) -> None:
    formats = {f"Q{n}": "#,##0" for n in range(1, 5)} | {"Growth": "0.0%"}
    _workbook(path, {"Budget 2026": BUDGET}, formats)


def _shifts(path: Path) -> None:
    from odf.opendocument import OpenDocumentSpreadsheet
    from odf.table import Table, TableCell, TableRow
    from odf.text import P

    document = OpenDocumentSpreadsheet()
    table = Table(name="June")
    for row in SHIFTS:
        line = TableRow()
        for value in row:
            if isinstance(value, date):
                cell = TableCell(valuetype="date", datevalue=value.isoformat())
                cell.addElement(P(text=value.strftime("%d %B %Y")))
            else:
                cell = TableCell(valuetype="string")
                cell.addElement(P(text=value))
            line.addElement(cell)
        table.addElement(line)
    document.spreadsheet.addElement(table)
    document.save(str(path))


# Word processors.


def _document() -> Any:
    from docx import Document

    return Document()


def _table(document: Any, rows: Sequence[Row]) -> None:
    table = document.add_table(rows=len(rows), cols=len(rows[0]))
    for line, row in zip(table.rows, rows, strict=True):
        for cell, value in zip(line.cells, row, strict=True):
            cell.text = str(value)


def _press_manual(path: Path) -> None:
    from docx.oxml import OxmlElement

    document = _document()
    document.add_heading("Hydraulic press HP-9", 0)
    document.add_heading("Spare parts", 1)
    part = document.add_paragraph("The pressure gauge has the part number KX")
    run = part.runs[0]._r
    run.append(OxmlElement("w:noBreakHyphen"))
    part.add_run("4471. It is calibrated every 18 months by the maker.")
    document.add_heading("Operation", 1)
    document.add_paragraph(
        "The oil must rest for 1\u201124 hours after a change, at best overnight."
    )
    document.add_paragraph("The ram may be loaded with at most 63 tonnes.")
    document.add_heading("Tightening torques", 1)
    _table(
        document,
        (
            ("Bolt", "Size", "Torque"),
            ("Base plate", "M16", "210 Nm"),
            ("Guide rail", "M10", "49 Nm"),
            ("Pump cover", "M8", "25 Nm"),
        ),
    )
    document.save(path)


def _travel_policy(path: Path) -> None:
    document = _document()
    document.add_heading("Travel policy", 0)
    document.add_paragraph("This policy applies to every trip that begins after 1 February 2026.")
    document.add_heading("Allowances", 1)
    _table(
        document,
        (
            ("", "Hotel per night", "Meals per day"),
            ("Norway", "1,450 NOK", "680 NOK"),
            ("Portugal", "118 EUR", "54 EUR"),
            ("Japan", "17,500 JPY", "7,200 JPY"),
        ),
    )
    document.add_heading("Approval", 1)
    document.add_paragraph("Trips of more than four nights are approved by Henrike Vaal.")
    document.add_paragraph("Receipts are handed in within 21 days after the return.")
    document.save(path)


def _minutes(path: Path) -> None:
    document = _document()
    document.add_heading("Minutes of the works council, 12 May 2026", 0)
    document.add_paragraph("Present: Bodil Krag, Samir Haddad, Yara Lopes. Absent: Finn Oster.")
    document.add_heading("Decisions", 1)
    document.add_paragraph(
        "The canteen stays closed from 20 July to 7 August.", style="List Number"
    )
    document.add_paragraph("Samir Haddad buys eleven height-adjustable desks.", style="List Number")
    document.add_paragraph("The bicycle cellar gets a card reader.", style="List Number")
    document.add_heading("Next meeting", 1)
    document.add_paragraph("The council meets again on 16 June 2026 in room Tapi.")
    document.save(path)


def _lease(path: Path) -> None:
    document = _document()
    section = document.sections[0]
    section.header.paragraphs[0].text = "Contract L-7730-B"
    section.footer.paragraphs[0].text = "Landlord: Estera Holding, Quay 14"
    document.add_heading("Lease of warehouse 5", 0)
    document.add_paragraph("The monthly rent is 6,840 EUR, payable on the third working day.")
    document.add_paragraph(
        "The lease ends on 30 September 2031 and may be prolonged by three years."
    )
    document.add_paragraph("A deposit of three monthly rents was paid on 2 October 2026.")
    document.add_paragraph("The tenant may sublet at most 120 square metres.")
    document.save(path)


def _onboarding(path: Path) -> None:
    document = _document()
    document.add_heading("First week of new colleagues", 0)
    _table(
        document,
        (
            ("Day", "What", "With whom"),
            ("Monday", "Badge and laptop", "Reception"),
            ("Tuesday", "Fire drill", "Ola Brekke"),
            ("Wednesday", "Warehouse tour", "Kirsi Salo"),
            ("Friday", "Lunch with the board", "Vera Dahl"),
        ),
    )
    document.add_paragraph(
        "The guest network is called PINE-GUEST and changes its password on Sundays."
    )
    document.add_paragraph("Parking permits are issued by Milo Strand.")
    document.save(path)


def _safety(path: Path) -> None:
    from odf.opendocument import OpenDocumentText
    from odf.text import H, P

    document = OpenDocumentText()
    for element in (
        H(outlinelevel=1, text="Safety rules of the paint shop"),
        P(
            text="Respirators of class P3 are worn above 85 decibels of compressor noise or when spraying."
        ),
        P(text="The solvent cabinet holds at most 60 litres."),
        H(outlinelevel=1, text="Emergencies"),
        P(text="The assembly point is the lawn behind gate 4."),
        P(text="The first-aid kit was last checked on 9 April 2026 by Nadia Holm."),
    ):
        document.text.addElement(element)
    document.save(str(path))


def _warranty(path: Path) -> None:
    document = _document()
    document.add_heading("Warranty terms", 0)
    document.add_paragraph("Kitchens are warranted for 7 years, worktops of oak for 30 months.")
    document.add_heading("Claims", 1)
    document.add_paragraph("A claim needs the serial number and two photographs.")
    document.add_paragraph("Claims are answered within 9 working days.")
    document.add_heading("Exclusions", 1)
    document.add_paragraph("Damage by water softeners is not covered.")
    document.save(path)


# Slides.


def _slides(path: Path, slides: Sequence[tuple[str, Sequence[str], Sequence[Row], str]]) -> None:
    """Slides of a title, paragraphs, a table and notes."""
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    for title, paragraphs, rows, notes in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(paragraphs)
        if rows:
            size = (Inches(1), Inches(3), Inches(8), Inches(2))
            table = slide.shapes.add_table(len(rows), len(rows[0]), *size).table
            for r, row in enumerate(rows):
                for c, value in enumerate(row):
                    table.cell(r, c).text = str(value)
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    deck.save(path)


def _roadmap(path: Path) -> None:
    releases = (
        ("Release", "Date", "Captain"),
        ("Fjord", "3 June 2026", "Lena Ruud"),
        ("Glacier", "14 October 2026", "Matti Kallio"),
        ("Harbour", "20 January 2027", "Ines Prado"),
    )
    _slides(
        path,
        (
            ("Roadmap of the ferry portal", ["Three releases are planned."], releases, ""),
            ("Risks", ["The payment provider Zahlix ends its old interface in November."], (), ""),
        ),
    )


def _quarterly(path: Path) -> None:
    sales = (
        ("Region", "Orders", "Revenue"),
        ("Nordics", "1,204", "3.1 M EUR"),
        ("Iberia", "867", "1.9 M EUR"),
        ("Benelux", "455", "0.8 M EUR"),
    )
    notes = "Say that the returns fell to 2.4 % after the new packaging."
    _slides(
        path,
        (
            ("First quarter 2026", ["Orders by region"], sales, notes),
            ("Staff", ["Headcount grew from 212 to 231."], (), ""),
        ),
    )


def _training(path: Path) -> None:
    _slides(
        path,
        (
            ("Forklift training", ["The course takes two days.", "Places: 14"], (), ""),
            ("Registration", ["Register with Tove Lie until 22 May.", "Price: 390 EUR"], (), ""),
        ),
    )


# Mails.


def _mail(sender: str, subject: str, sent: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"], mail["Date"] = (
        sender,
        "office@pine.example",
        subject,
        sent,
    )
    return mail


def _delivery_delay(path: Path) -> None:
    mail = _mail(
        "Jorun Vik <jorun@korvik.example>",
        "Delay of order 88-213",
        "Tue, 09 Jun 2026 08:12:00 +0200",
    )
    mail.set_content("Please view this message in a mail program that shows HTML.\n")
    mail.add_alternative(
        "<html><body><p>Dear team,</p><p>order <b>88-213</b> leaves our mill on <b>17 June 2026</b>, "
        "eight days late, because the galvanising line stood still.</p><p>We credit you 310 EUR.</p>"
        "</body></html>",
        subtype="html",
    )
    path.write_bytes(mail.as_bytes())


def _site_visit(path: Path) -> None:
    mail = _mail(
        "Yara Lopes <yara@pine.example>",
        "Visit of the inspectors",
        "Wed, 10 Jun 2026 15:40:00 +0200",
    )
    mail.set_content(
        "<table><tr><th>When</th><th>What</th><th>Where</th></tr>"
        "<tr><td><p>09:20</p></td><td><p>Sprinkler test</p></td><td><p>Hall C</p></td></tr>"
        "<tr><td><p>11:05</p></td><td><p>Lift inspection</p></td><td><p>Tower</p></td></tr></table>"
        "<p>The inspectors are called Egil Tveit and Rosa Blum.</p>",
        subtype="html",
    )
    mail.make_mixed()
    footer = EmailMessage()
    footer.set_content("_______\nfacilities mailing list\nleave: facilities-leave@pine.example\n")
    mail.attach(footer)
    path.write_bytes(mail.as_bytes())


def _forwarded_offer(path: Path) -> None:
    offer = _mail(
        "Nils Arvo <nils@lumen.example>", "Offer for skylights", "Mon, 01 Jun 2026 10:00:00 +0200"
    )
    offer.set_content("We offer 26 skylights at 415 EUR each, valid until 30 June 2026.\n")
    mail = _mail(
        "Hana Novak <hana@pine.example>",
        "Fwd: Offer for skylights",
        "Tue, 02 Jun 2026 09:00:00 +0200",
    )
    mail.set_content("Please decide this week. Ada would take it.\n")
    mail.add_attachment(offer)
    path.write_bytes(mail.as_bytes())


def _newsletter(path: Path) -> None:
    mail = _mail(
        "Canteen <canteen@pine.example>", "Menu and news", "Fri, 05 Jun 2026 07:30:00 +0200"
    )
    mail.set_content("")
    mail.add_alternative(
        "<div style='display:none;max-height:0'>Your weekly menu</div><h2>Monday</h2><p>Lentil soup, "
        "4.20 EUR</p><h2>Thursday</h2><p>Baked trout, 7.90 EUR</p><p>The coffee machine on floor 3 is "
        "repaired on Wednesday.</p>",
        subtype="html",
    )
    path.write_bytes(mail.as_bytes())


# Pages.


def _faq(path: Path) -> None:
    path.write_text(
        "<html><head><title>Support</title></head><body><h1>Support</h1>"
        "<h2><button aria-expanded='false'>How do I reset the thermostat?</button></h2>"
        "<div hidden><p>Hold the wheel for 12 seconds until the display shows RS.</p></div>"
        "<h2><button aria-expanded='false'>Which batteries does the door sensor take?</button></h2>"
        "<div hidden><p>Two CR2450 cells; they last about 26 months.</p></div>"
        "<h2><button aria-expanded='false'>Who installs a heat pump?</button></h2>"
        "<div hidden><p>Only partners with the certificate W-118.</p></div></body></html>",
        encoding="utf-8",
    )


def _tariffs(path: Path) -> None:
    rows = (("Aarhus", "4410", "39 DKK"), ("Odense", "2875", "45 DKK"), ("Ribe", "310", "62 DKK"))
    cells = "".join(
        "<tr>" + "".join(f"<td><p>{value}</p></td>" for value in row) + "</tr>" for row in rows
    )
    path.write_text(
        "<html><body><h1>District heating tariffs 2026</h1><table><tr><th></th><th>Customers</th>"
        f"<th>Price per unit</th></tr>{cells}</table><p>Tariffs change on 1 October.</p></body></html>",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
