#!/usr/bin/env bash
# llguidance 1.9.1: a Lark grammar that names a token by its id is invalid for a tokenizer with fewer tokens.
#
# `<[151657]>` in a grammar stands for the token with this id, as calls of tools begin with one. A server that
# checks a caller's grammar beforehand with a small tokenizer, such as the library's byte tokenizer, refuses a
# grammar that is valid for the model. Seen: "Token range end too large" with the byte tokenizer, nothing for an
# id that it has.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet llguidance==1.9.1
"$folder/venv/bin/python" - <<'PYTHON'
from llguidance import LLMatcher, LLTokenizer

seen = {}
for token in (10, 151_657):
    grammar = LLMatcher.grammar_from_lark(f'start: <[{token}]> "x"')
    matcher = LLMatcher(LLTokenizer("byte"), grammar, log_level=0)
    seen[token] = matcher.is_error()
    print(token, matcher.get_error()[:120].replace("\n", " "))
assert seen == {10: False, 151_657: True}, "the behaviour has changed"
PYTHON
