#!/usr/bin/env bash
# transformers 5.23.0: Glm4MoeConfig writes `partial_rotary_factor: 0.5` into the rope_parameters it is given.
#
# A dictionary that several configurations share (a table of settings in a test, a loop over model kinds) then
# says half rotation in those made later. Models that ignore the key (LFM2) still rotate whole heads, so a
# checkpoint saved from such a configuration says something else than its weights were computed with.
# Seen: the caller's dictionary has the key after the call, and an Lfm2Config made of it saves it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet transformers==5.23.0
"$folder/venv/bin/python" - <<'PYTHON'
from transformers import Glm4MoeConfig, Lfm2Config

shared = {"rope_type": "default", "rope_theta": 10_000.0}
Glm4MoeConfig(rope_parameters=shared)
later = Lfm2Config(rope_parameters=shared).to_dict()["rope_parameters"]
print("the caller's dictionary:", shared)
print("a later configuration:", later)
assert shared.get("partial_rotary_factor") == 0.5, "the behaviour has changed"
assert later.get("partial_rotary_factor") == 0.5, "the behaviour has changed"
PYTHON
