"""Repair that starts from failing tests: suspects, candidates, and the choice among those that pass.

  failing test ── spectrum ── suspects ─┬─ usual slips (`operators`) ─┬─ failing test ── all tests ── rules ─┐
                                        └─ rewrites of a model ───────┘                                      │
                         `Gate.decide_failing` ── choice ── varied tests: which candidates behave alike ─────┘

**Events**, beside those of a repair and of `agents.width`, whose members they do not change:

| type | members of `data` |
|---|---|
| `finding` | a failing test, rule `failing-test`; `test` (its name), `text` (what pytest said) |
| `suspects` | `test`, `suspects` (each with `file`, `name`, `line`, `end_line`, `score`, `in_trace`) |
| `slips_tried` | `test`, `tried`, `dropped` (how many by check), `passed`, `near` |
| `model_asked` | `test`, `name` (the suspect), `prompt` (the whole text) |
| `decision` | `question`, `test`, `label` (the choice), `abstained`, `reason`, `clusters` |

`near` are changes that mend the test and fail another check. A suspect has `file`, `name`, `line`,
`end_line`, `score` and `in_trace`; what passed has `what`, `name`, `tier` and `diff`; what is near `what`,
`name`, `check` and `detail`; a cluster `weight`, `what`, `name` and `diff`.
"""
