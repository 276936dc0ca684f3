#!/usr/bin/env bash
# python-docx 1.2.0: `Paragraph.text` leaves out tracked insertions, moved text and simple fields.
#
# Word shows "The deposit of 900 euro is due on 3 June." with "900" inserted under change tracking and the date
# in a simple field (w:fldSimple). python-docx returns the sentence with two gaps, and nothing tells that
# something is missing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet python-docx==1.2.0
"$folder/venv/bin/python" - <<'PYTHON'
from docx import Document
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

document = Document()
paragraph = document.add_paragraph("The deposit of ")
paragraph._p.append(
    parse_xml(
        f'<w:ins {nsdecls("w")} w:id="1" w:author="A. Writer" w:date="2026-05-01T10:00:00Z">'
        "<w:r><w:t>900</w:t></w:r></w:ins>"
    )
)
paragraph.add_run(" euro is due on ")
paragraph._p.append(
    parse_xml(
        f'<w:fldSimple {nsdecls("w")} w:instr="DATE"><w:r><w:t>3 June</w:t></w:r></w:fldSimple>'
    )
)
paragraph.add_run(".")
print(repr(paragraph.text))
assert paragraph.text == "The deposit of  euro is due on .", "the behaviour has changed"
PYTHON
