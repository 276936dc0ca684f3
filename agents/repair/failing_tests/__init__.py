"""Repair that starts from failing tests: suspects, candidates, and the choice among those that pass.

    failing test ─ spectrum ─ suspects ─┬─ small changes (`operators`)      ─┬─ failing test ─ all tests ─ rules
                                        └─ rewrites by a model (`rewrites`) ─┘            │
                                 `Gate.decide_failing`  ─  choice  ─  varied tests: who behaves alike

**Events**, beside those of a repair and of `agents.width`, whose members they do not change:

| type | members of `data` |
|---|---|
| `finding` | a failing test, rule `failing-test`; `test` (its name), `text` (what pytest said) |
| `suspects` | `test`, `suspects` (each with `file`, `name`, `line`, `end_line`, `score`, `in_trace`) |
| `slips_tried` | `test`, `tried`, `dropped` (how many by check), `passed` (each with `what`, `name`, `tier`, `diff`), `near` (what mends the test and fails another check) |
| `model_asked` | `test`, `name` (the suspect), `prompt` (the whole text) |
| `decision` | `question` (`which repair`), `label` (the chosen change), `abstained`, `reason`, `clusters` (each with `weight`, `what`, `diff`) |
"""
