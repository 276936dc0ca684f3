"""Faults that are put into code: each changes it, parses, and stays within the given lines."""

import ast

from agents.steps.code.mutants import MAX_MUTANTS, mutants

SOURCE = """def other(x):
    return x < 1


def f(items, limit):
    total = 0
    for at in range(len(items)):
        if items[at] >= limit and not total:
            total += max(items)
    return total
"""


def test_each_mutant_is_another_program_that_parses():
    made = mutants(SOURCE, 5, 10)
    whole = ast.unparse(ast.parse(SOURCE))
    assert 4 <= len(set(made)) == len(made) <= MAX_MUTANTS
    for one in made:
        assert ast.unparse(ast.parse(one)) != whole
        assert "return x < 1" in one


def test_code_without_anything_to_change_has_no_mutants():
    assert mutants("def f():\n    pass\n", 1, 2) == []
