#!/usr/bin/env bash
# pandas 3.1.1 with odfpy 1.4.1: one cell with a duration above a day makes a whole ODS file unreadable.
#
# OpenDocument writes a duration of 26:30 hours as office:time-value="PT26H30M00S", as a sheet of working hours has
# it. `pandas.read_excel(engine="odf")` takes the value for a time of day and raises; no option skips the cell.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pandas==3.1.1 odfpy==1.4.1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from pathlib import Path

import pandas
from odf.opendocument import OpenDocumentSpreadsheet
from odf.table import Table, TableCell, TableRow
from odf.text import P

document = OpenDocumentSpreadsheet()
table = Table(name="Hours")
for value, shown in (("PT07H45M00S", "07:45"), ("PT26H30M00S", "26:30")):
    row, cell = TableRow(), TableCell(valuetype="time", timevalue=value)
    cell.addElement(P(text=shown))
    row.addElement(cell)
    table.addElement(row)
document.spreadsheet.addElement(table)
path = Path(sys.argv[1]) / "hours.ods"
document.save(str(path))
try:
    pandas.read_excel(path, engine="odf", header=None)
except Exception as error:
    print(type(error).__name__, "-", str(error)[:120])
else:
    raise SystemExit("the behaviour has changed: the file is read")
PYTHON
