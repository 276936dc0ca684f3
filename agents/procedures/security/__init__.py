"""Procedures of the security agents."""

from collections.abc import Mapping

from agents.procedures.procedure import Procedure
from agents.procedures.security.advisories import run_dependency_audit

PROCEDURES: Mapping[str, Procedure] = {"dependency_audit": run_dependency_audit}
