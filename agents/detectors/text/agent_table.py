"""What each agent of the roster does, for planning: its trigger words, what it produces and when it is done.

The keys are those of `agents.roster.keys`, which this layer may not import; a test compares them.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One agent.

    Attributes:
        verbs: words by which a task asks for it.
        nouns: words that name its subject.
        product: what its output is called.
        done_when: when its step is finished.
        writes: whether it changes files.
    """

    verbs: tuple[str, ...]
    nouns: tuple[str, ...]
    product: str
    done_when: str
    writes: bool = False


def _entry(
    verbs: str, nouns: str, product: str, done_when: str, *, writes: bool = False
) -> AgentEntry:
    return AgentEntry(tuple(verbs.split()), tuple(nouns.split()), product, done_when, writes)


_FOUND = "all findings have a file and a line"
_CHANGED = "the diff applies and the tests pass"

AGENTS: Mapping[str, AgentEntry] = {
    "planner": _entry("plan schedule organise organize", "plan steps roadmap", "plan", "no cycle, no unknown agent"),
    "researcher": _entry("research find search gather look investigate collect compare", "sources facts information background papers", "sources", "every statement has a source"),
    "coder": _entry("implement write code add create change rename refactor build port update", "function class code script module api endpoint feature command parser", "code", _CHANGED, writes=True),
    "debugger": _entry("debug fix reproduce trace diagnose locate", "bug crash traceback exception failure error panic", "diagnosis", "the failing line and its cause are named"),
    "reasoning": _entry("calculate compute solve prove derive convert", "equation sum total percentage average units", "result", "every step is computed"),
    "critic": _entry("criticise criticize critique comment assess", "draft weaknesses argument essay", "critique", "each item of the checklist is judged"),
    "refiner": _entry("refine improve revise polish rework correct rewrite edit", "draft text wording style", "revised text", "numbers and names are kept"),
    "summarizer": _entry("summarise summarize condense shorten abridge", "summary abstract digest minutes", "summary", "the summary is shorter and has no new number"),
    "narrator": _entry("narrate tell describe present write", "story narrative prose report article text", "narration", "each fact is used"),
    "expander": _entry("expand elaborate develop extend outline", "outline sections chapters", "sections", "each point of the outline has a section"),
    "extractor": _entry("extract parse pull read", "fields values table data dates amounts invoice", "data", "each value occurs in the source"),
    "classifier": _entry("classify label categorise categorize tag sort", "category label class sentiment topic", "label", "a label or an abstention"),
    "router": _entry("route dispatch choose", "pipeline", "route", "a pipeline is named"),
    "translator": _entry("translate localise localize", "translation language german french spanish english hindi", "translation", "placeholders, numbers and code are kept"),
    "ensemble": _entry("vote reconcile agree", "answers opinions votes", "answer", "an answer or a tie"),
    "merger": _entry("merge join combine unite", "parts versions results branches", "merged result", "conflicts are listed"),
    "judge": _entry("judge rank score choose select", "candidates options ranking winner", "ranking", "all candidates are scored"),
    "memory": _entry("remember recall forget store memorise memorize", "memory preference", "memory", "the operations are listed"),
    "tool": _entry("run call execute invoke open list show grep", "tool command", "output", "the tool has answered"),
    "validator": _entry("validate verify check confirm", "requirements schema checklist specification acceptance", "verdict", "each requirement is judged"),
    "syntax_audit": _entry("parse lint check", "syntax", "findings", _FOUND),
    "type_safety": _entry("typecheck check", "types typing annotations mypy", "findings", _FOUND),
    "logic_flaw": _entry("audit review check", "logic conditions flaws", "findings", _FOUND),
    "consistency_guard": _entry("compare check", "consistency docs documentation config", "findings", _FOUND),
    "hallucination_hunter": _entry("factcheck check", "claims hallucinations citations", "findings", _FOUND),
    "edge_case_hunter": _entry("check hunt", "edge boundary boundaries corner", "findings", _FOUND),
    "performance_profiler": _entry("profile measure optimise optimize speed", "performance slow hot latency", "findings", _FOUND),
    "output_verifier": _entry("gate verify", "gates output final", "verdict", "no open critical finding"),
    "patch_applier": _entry("patch apply repair", "patch finding findings diff", "patch", _CHANGED, writes=True),
    "self_reflection": _entry("reflect learn", "lesson lessons run retrospective", "lesson", "a lesson is written"),
    "test_generator": _entry("test cover write add generate create", "test tests coverage", "tests", "the test fails before the fix", writes=True),
    "regression_guard": _entry("compare guard", "regression regressions before after", "verdict", "differences are listed"),
    "security_audit": _entry("audit review scan check secure", "security vulnerabilities vulnerability", "findings", _FOUND),
    "injection_scanner": _entry("scan audit check", "injection sql xss", "findings", _FOUND),
    "auth_audit": _entry("audit check", "authentication authorisation authorization login auth", "findings", _FOUND),
    "crypto_audit": _entry("audit check", "crypto cryptography encryption cipher hash", "findings", _FOUND),
    "dependency_audit": _entry("audit check", "dependencies packages dependency", "findings", _FOUND),
    "secrets_scanner": _entry("scan check", "secrets credentials passwords secret", "findings", _FOUND),
    "network_security": _entry("audit check", "network tls cors ssrf", "findings", _FOUND),
    "privilege_audit": _entry("audit check", "privileges root permissions container capabilities", "findings", _FOUND),
    "api_security": _entry("audit check", "openapi", "findings", _FOUND),
    "compliance": _entry("audit check", "licences licenses compliance privacy gdpr retention", "findings", _FOUND),
    "ui_designer": _entry("design sketch", "screen ui interface form", "screen specification", "each component is listed"),
    "component_builder": _entry("build implement", "component widget", "component", _CHANGED, writes=True),
    "layout_designer": _entry("lay arrange", "layout grid", "layout", "nothing overlaps"),
    "style_designer": _entry("style colour color", "colours colors palette typography spacing", "tokens", "all contrasts suffice"),
    "accessibility_auditor": _entry("audit check", "accessibility wcag contrast screenreader", "findings", _FOUND),
    "ux_reviewer": _entry("review check", "ux usability heuristics flow", "findings", _FOUND),
    "design_critic": _entry("critique review score", "design visual alignment", "scores", "five scores are given"),
    "prototype_builder": _entry("prototype mock build", "prototype mockup html page", "prototype", "the page makes no outside request", writes=True),
    "design_system": _entry("unify consolidate", "tokens components duplicates", "tokens", "no near-duplicate is left"),
}  # fmt: skip
