#!/usr/bin/env bash
# llguidance 1.9.1: a string with a large `maxLength` compiles, and fails only while a valid one is written.
#
# {"type": "string", "maxLength": 65536}, which schemas of agents' tools have, is validated and built without
# an error, but the matcher counts the length in lexer states: with max_lexer_states at 20,000 and masks computed it stops with
# "too many states" somewhere inside of a valid long string, so that an answer ends with an error after
# thousands of tokens. 8,192 passes. Seen: an error for 65,536 before 40,000 characters, none for 8,192.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet llguidance==1.9.1
"$folder/venv/bin/python" - <<'PYTHON'
import json

from llguidance import LLMatcher, LLParserLimits, LLTokenizer

limits = LLParserLimits(max_lexer_states=20_000)
seen = {}
for bound, written in ((8_192, 8_000), (65_536, 40_000)):
    grammar = LLMatcher.grammar_from_json_schema(json.dumps({"type": "string", "maxLength": bound}))
    matcher = LLMatcher(LLTokenizer("byte"), grammar, limits=limits, log_level=0)
    assert not matcher.is_error(), "the schema is refused now"
    matcher.consume_token(ord('"'))
    for count in range(written):
        if count % 100 == 0:
            matcher.compute_bitmask()  # as a sampler does before each token
        if not matcher.consume_token(ord("a")) or matcher.is_error():
            break
    seen[bound] = matcher.is_error()
    print(f"maxLength {bound}: {count + 1} characters, {matcher.get_error().splitlines()[:1]}")
assert seen == {8_192: False, 65_536: True}, "the behaviour has changed"
PYTHON
