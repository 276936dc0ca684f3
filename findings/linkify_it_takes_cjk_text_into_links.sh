#!/usr/bin/env bash
# linkify-it-py 2.2.0: an address before a full-width full stop takes the Chinese sentence behind it into the link.
#
# "见 https://example.com/docs。谢谢" has a link to https://example.com/docs and thanks; linkify-it-py (and with it
# markdown-it-py's `linkify`) links https://example.com/docs。谢谢. Answers of models in Chinese have this often.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet linkify-it-py==2.2.0
"$folder/venv/bin/python" - <<'PYTHON'
from linkify_it import LinkifyIt

found = [one.raw for one in LinkifyIt().match("见 https://example.com/docs。谢谢")]
print(found)
assert found == ["https://example.com/docs。谢谢"], "the behaviour has changed"
PYTHON
