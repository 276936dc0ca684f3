#!/usr/bin/env bash
# odfpy 1.4.1: `teletype.extractText` returns text that a tracked change has deleted.
#
# In an ODT with tracked changes a program shows "Pay 250 euro." where the author deleted "300" and wrote "250";
# the text of the body by odfpy has both. Who indexes such documents finds, and cites, what was taken back.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet odfpy==1.4.1
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
import zipfile
from pathlib import Path

from odf import teletype
from odf.opendocument import load

path = Path(sys.argv[1]) / "changes.odt"
names = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in (("office", "office"), ("text", "text"), ("manifest", "manifest"))
)
content = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document-content {names} xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.2">
<office:body><office:text>
<text:tracked-changes><text:changed-region text:id="c1"><text:deletion>
<office:change-info><dc:creator>A. Writer</dc:creator><dc:date>2026-05-01T10:00:00</dc:date></office:change-info>
<text:p>300</text:p></text:deletion></text:changed-region></text:tracked-changes>
<text:p>Pay <text:change text:change-id="c1"/>250 euro.</text:p>
</office:text></office:body></office:document-content>"""
manifest = f"""<?xml version="1.0" encoding="UTF-8"?>
<manifest:manifest {names} manifest:version="1.2">
<manifest:file-entry manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.text"/>
<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>"""
with zipfile.ZipFile(path, "w") as archive:
    archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
    archive.writestr("content.xml", content)
    archive.writestr("META-INF/manifest.xml", manifest)
text = teletype.extractText(load(path).text)
print(repr(text))
assert "300" in text and "250 euro." in text, "the behaviour has changed"
PYTHON
