"""The keys of the 51 built-in agents, in the roster's order, by category."""

from agents.api.agent_spec import Category

BUILTIN_KEYS: dict[Category, tuple[str, ...]] = {
    "execution": tuple(
        [
            "planner",
            "researcher",
            "coder",
            "debugger",
            "reasoning",
            "critic",
            "refiner",
            "summarizer",
            "narrator",
            "expander",
            "extractor",
            "classifier",
            "router",
            "translator",
            "ensemble",
            "merger",
            "judge",
            "memory",
            "tool",
            "validator",
        ]
    ),
    "audit": tuple(
        [
            "syntax_audit",
            "type_safety",
            "logic_flaw",
            "consistency_guard",
            "hallucination_hunter",
            "edge_case_hunter",
            "performance_profiler",
            "output_verifier",
            "patch_applier",
            "self_reflection",
            "test_generator",
            "regression_guard",
        ]
    ),
    "security": tuple(
        [
            "security_audit",
            "injection_scanner",
            "auth_audit",
            "crypto_audit",
            "dependency_audit",
            "secrets_scanner",
            "network_security",
            "privilege_audit",
            "api_security",
            "compliance",
        ]
    ),
    "design": tuple(
        [
            "ui_designer",
            "component_builder",
            "layout_designer",
            "style_designer",
            "accessibility_auditor",
            "ux_reviewer",
            "design_critic",
            "prototype_builder",
            "design_system",
        ]
    ),
}
