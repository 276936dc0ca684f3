"""Verified width: several candidates of one piece of code from one prompt, each checked by running it.

    from agents.width import CodePrompt, widen
    from agents.width.checks.parses import Parses
    from agents.width.checks.defines import Defines
    from agents.width.checks.examples import Examples
    from agents.width.agreement import Agreement

    chosen = await widen(
        session,
        CodePrompt.ask("Write `def add(a, b)`, which returns the sum."),
        [Parses(), Defines("add", ("a", "b")), Examples(setting, examples)],
        agreement=Agreement(setting, calls),
        width=8,
        record=run.record,
        meter=run.meter,
    )
    chosen.code        # the text of the fence; empty if no candidate can be used
    chosen.verified    # whether it passed every check, one of which ran it
    chosen.reason      # one sentence
    chosen.candidates  # code, temperature, rank and the outcome of each check, in the order they were written

A check is an object with `name`, `decides` (whether passing it shows that the code does what was asked) and
`async judge(code) -> Outcome`; checks are given from cheap to dear, and a candidate is dropped at the first
that it fails. `agents.width.check` has the contract. Without `agreement` the first candidate is
greedy and alone; if it passes all, nothing else is written; otherwise the others follow together at rising
temperatures, sharing the prompt's KV blocks, and the rest is aborted at the first that passes all, if one
of the checks decides. With `agreement` all are written together, and the rest is aborted once enough that
pass do the same on all generated inputs. How many they are depends on what checking the first one took and
on the budget (`agents.width.width`).

**Events.** `record(type, **data)` is called with these types of `agents.api.events.RunEventType`; all of
them have the member `width`, a number that tells the widenings of one run apart:

    width_started      goal        a few words
                       candidates  at most so many
                       checks      names in order; `agreement` is the last if it may be used
    candidate_written  candidate   number from 0
                       temperature
                       round       0; 1 for the repairs of failed ones
                       code, tokens
                       same_as     number of an equal earlier candidate, whose checks it shares, or null
    candidate_checked  candidate
                       check       name
                       passed
                       detail      one sentence: what failed, or what passed
                       seconds
    candidate_chosen   candidate   number, or null if none
                       verified    whether it passed every check, one of which decides
                       decided_by  name of the check that decided, `agreement`, `likelihood` or empty
                       reason      one sentence
                       stopped     how many others were aborted
                       diff        of the chosen change; empty for code that is no change
"""

from agents.width.candidate import Candidate, Outcome
from agents.width.chosen import Chosen
from agents.width.prompt import CodePrompt
from agents.width.width import widen

__all__ = ["Candidate", "Chosen", "CodePrompt", "Outcome", "widen"]
