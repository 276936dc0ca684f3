"""Deterministic fixers: the smallest change that removes one finding.

`fix_for` tries the fixers whose rules or CWE numbers match. A fixer returns None where it cannot keep the
meaning of the code. The result always parses.
"""

from collections.abc import Callable, Mapping

from agents.api.finding import Finding
from agents.procedures.audit.fixers import (
    arguments,
    boundaries,
    calls,
    commands,
    literals,
    transport,
)
from agents.procedures.audit.fixers.configuration import fix_configuration
from agents.procedures.audit.fixers.edits import Fix, Target
from agents.procedures.audit.fixers.ruff_fixes import fix_by_ruff
from agents.workspace.source_file import SourceFile

Fixer = Callable[[Target], Fix | None]

BY_RULE: Mapping[str, tuple[Fixer, ...]] = {
    "unguarded-division": (boundaries.fix_division,),
    "off-by-one": (boundaries.fix_off_by_one,),
    "mutable-default": (boundaries.fix_mutable_default,),
    "B006": (boundaries.fix_mutable_default,),
    "open-without-encoding": (boundaries.fix_encoding,),
    "empty-reduction": (boundaries.fix_reduction_default,),
    "empty-index": (boundaries.fix_empty_index,),
    "unguarded-next": (boundaries.fix_next_default,),
    "constant-operand": (boundaries.fix_constant_operand,),
    "weak-tls": (transport.fix_connection,),
    "wrong-boolean-operator": (boundaries.fix_wrong_or,),
    "is-literal": (literals.fix_none_comparison,),
    "E711": (literals.fix_none_comparison,),
    "E722": (literals.fix_bare_except,),
    "B104": (literals.fix_bind,),
    "B105": (literals.fix_hard_coded_secret,),
    "B106": (literals.fix_hard_coded_secret,),
    "B107": (),
}
BY_CWE: Mapping[int, tuple[Fixer, ...]] = {
    20: (calls.fix_yaml_load, transport.fix_xml),
    22: (arguments.fix_extractall,),
    78: (commands.fix_shell, commands.fix_os_system),
    89: (calls.fix_sql,),
    94: (calls.fix_eval, literals.fix_switch),
    95: (calls.fix_eval,),
    79: (literals.fix_switch,),
    208: (calls.fix_compare,),
    215: (literals.fix_switch,),
    259: (literals.fix_hard_coded_secret,),
    295: (literals.fix_switch, transport.fix_connection),
    322: (transport.fix_connection,),
    327: (calls.fix_weak_hash, transport.fix_connection),
    328: (calls.fix_weak_hash,),
    330: (calls.fix_random,),
    338: (calls.fix_random,),
    347: (literals.fix_jwt_algorithms, literals.fix_switch),
    369: (boundaries.fix_division,),
    377: (calls.fix_mktemp,),
    396: (literals.fix_bare_except,),
    400: (arguments.fix_timeout,),
    489: (literals.fix_switch,),
    502: (calls.fix_yaml_load,),
    605: (literals.fix_bind,),
    611: (transport.fix_xml,),
    614: (literals.fix_switch, arguments.fix_cookie),
    732: (literals.fix_file_mode,),
    798: (literals.fix_hard_coded_secret,),
    1004: (literals.fix_switch, arguments.fix_cookie),
    1188: (literals.fix_bind,),
    200: (literals.fix_bind,),
    668: (literals.fix_bind,),
}


def fix_for(file: SourceFile, finding: Finding) -> Fix | None:
    """The fix of a finding, or None if there is no fixer that applies."""
    for candidate in _candidates(file, finding):
        if candidate.text == file.text:
            continue
        changed = SourceFile(file.path, candidate.text.encode("utf-8", "replace"))
        if file.language != "python" or changed.python is not None:
            return candidate
    return None


def _candidates(file: SourceFile, finding: Finding) -> list[Fix]:
    if file.language != "python":
        found = fix_configuration(file, finding)
        return [found] if found is not None else []
    target = Target.of(file, finding)
    if target is None:
        return []
    fixers = BY_RULE.get(finding.rule, BY_CWE.get(finding.cwe or 0, ()))
    fixes = [fix for fixer in fixers if (fix := fixer(target)) is not None]
    if not fixes and finding.detector == "ruff_bugs":
        by_ruff = fix_by_ruff(file, finding)
        fixes += [by_ruff] if by_ruff is not None else []
    return fixes
