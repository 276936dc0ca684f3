"""Procedures of the audit agents whose result is more than findings."""

from collections.abc import Mapping

from agents.procedures.audit.check_claims import check_claims
from agents.procedures.audit.output_verifier import verify_output
from agents.procedures.audit.patch_applier import apply_patch
from agents.procedures.audit.performance_profiler import profile_performance
from agents.procedures.audit.regression_guard import guard_regressions
from agents.procedures.audit.self_reflection import reflect
from agents.procedures.audit.test_generator import generate_test
from agents.procedures.procedure import Procedure

PROCEDURES: Mapping[str, Procedure] = {
    "hallucination_hunter": check_claims,
    "output_verifier": verify_output,
    "patch_applier": apply_patch,
    "performance_profiler": profile_performance,
    "regression_guard": guard_regressions,
    "self_reflection": reflect,
    "test_generator": generate_test,
}
