#!/usr/bin/env bash
# llguidance 1.9.1: an unknown `format` is an error on a string and ignored on a number, without a warning.
#
# A server that passes on a caller's JSON schema refuses {"type": "string", "format": "money"} and compiles
# {"type": "number", "format": "money"}: who relies on the error to report what is not enforced misses
# the second. Seen: an error message for the string, none for the number and the integer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet llguidance==1.9.1
"$folder/venv/bin/python" - <<'PYTHON'
import json

import llguidance

seen = {}
for kind in ("string", "number", "integer"):
    schema = json.dumps({"type": kind, "format": "money"})
    grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
    seen[kind] = bool(llguidance.LLMatcher.validate_grammar(grammar))
print("an error:", seen)
assert seen == {"string": True, "number": False, "integer": False}, "the behaviour has changed"
PYTHON
