"""Seeded inputs of the design agents: `CASES` has one for each, `SCENARIOS` further ones."""

from agents.runs.result import RunResult
from tests.unit.agents.roster_cases.case import Case

PAGE = """<!DOCTYPE html>
<html>
<head><title></title><link rel="stylesheet" href="site.css"></head>
<body>
  <h1>Shop</h1>
  <h3>Offers</h3>
  <img src="shoe.jpg">
  <p class="hint">Free delivery over 50 euros</p>
  <div onclick="buy()">Buy now</div>
  <a href="/terms">click here</a>
  <form action="/order">
    <input name="email" placeholder="E-mail" required>
    <input name="city" required>
    <button>Order</button>
    <button onclick="wipe()">Delete account</button>
  </form>
</body>
</html>
"""
STYLE = """:root {
  --brand: #336699;
  --brand-2: #346798;
  --ink: #222222;
  --unused: #aa0000;
}
body { color: var(--ink); background: #ffffff; padding: 8px; margin: 16px; gap: 8px; }
.hint { color: #bbbbbb; }
.panel { width: 900px; padding: 13px; margin: 24px; border-color: #336698; }
.panel .x { color: var(--brnad); background: var(--brand); padding: 16px; }
button:focus { outline: none; }
"""
SITE = {"index.html": PAGE, "site.css": STYLE}
SPECIFICATION = {
    "title": "Dashboard",
    "components": [{"name": kind, "kind": kind} for kind in ("chart", "table", "email")],
}


def rules(result: RunResult) -> dict[str, int]:
    """Rule → line of its first finding."""
    found: dict[str, int] = {}
    for one in sorted(result.findings, key=lambda one: one.line):
        found.setdefault(one.rule, one.line)
    return found


def needs_a_model(result: RunResult) -> None:
    assert "needs a model" in result.output.cannot_do


def counts_the_components(result: RunResult) -> None:
    needs_a_model(result)
    assert result.output.inventory["input"] == 2


def returns_the_given_specification(result: RunResult) -> None:
    assert [one.kind for one in result.output.components] == ["chart", "table", "email"]


def lays_out_without_overlap(result: RunResult) -> None:
    assert [one.columns for one in result.output.layouts] == [4, 8, 12]
    for layout in result.output.layouts:
        cells = [
            (x, y)
            for region in layout.regions
            for x in range(region.x, region.x + region.width)
            for y in range(region.y, region.y + region.height)
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < layout.columns


def finds_the_low_contrast(result: RunResult) -> None:
    assert "low-contrast" in rules(result)
    assert any(one.name == "--brand" and one.kind == "color" for one in result.output.tokens)


def finds_the_barriers(result: RunResult) -> None:
    found = rules(result)
    expected = {
        "image-alt": 7, "click-without-key": 9, "link-text": 10, "input-label": 12, "page-language": 2,
        "page-title": 2, "heading-order": 6, "low-contrast": 8, "focus-visible": 11, "fixed-width": 9,
    }  # fmt: skip
    assert expected.items() <= found.items()


def finds_the_usability_problems(result: RunResult) -> None:
    found = rules(result)
    assert {"no-error-state": 11, "no-confirmation": 15, "input-type": 12}.items() <= found.items()


def scores_five_dimensions(result: RunResult) -> None:
    scores = result.output.scores
    assert list(scores) == ["contrast", "color", "type", "spacing", "alignment"]
    assert scores["contrast"] < 100
    assert scores["alignment"] < 100
    assert all(0 <= score <= 100 for score in scores.values())


def finds_the_barriers_of_a_page(result: RunResult) -> None:
    needs_a_model(result)
    assert {"image-alt", "input-label", "low-contrast"} <= rules(result).keys()


def compares_the_tokens(result: RunResult) -> None:
    found = rules(result)
    expected = {
        "near-duplicate-color": 3,
        "unused-token": 3,
        "undefined-token": 10,
        "off-palette": 8,
    }
    assert expected.items() <= found.items()


def says_what_is_missing(result: RunResult) -> None:
    assert result.output.cannot_do


CASES: dict[str, Case] = {
    "ui_designer": Case(
        counts_the_components, SITE, task="Design a login screen.", needs_model=True
    ),
    "component_builder": Case(needs_a_model, task="Build a newsletter form", needs_model=True),
    "layout_designer": Case(lays_out_without_overlap, inputs={"specification": SPECIFICATION}),
    "style_designer": Case(finds_the_low_contrast, files=SITE),
    "accessibility_auditor": Case(finds_the_barriers, files=SITE),
    "ux_reviewer": Case(finds_the_usability_problems, files=SITE),
    "design_critic": Case(scores_five_dimensions, files=SITE),
    "prototype_builder": Case(
        finds_the_barriers_of_a_page, SITE, task="Build a checkout", needs_model=True
    ),
    "design_system": Case(compares_the_tokens, files=SITE),
}

OVERLAPPING = """{
  "screen": {"width": 100, "height": 50},
  "boxes": [
    {"name": "menu", "x": 0, "y": 0, "width": 30, "height": 50},
    {"name": "chart", "x": 20, "y": 5, "width": 60, "height": 30},
    {"name": "footer", "x": 0, "y": 45, "width": 120, "height": 5}
  ]
}
"""
TOKENS = """{
  "color": {
    "primary": {"$value": "#0055aa"},
    "link": {"$value": "#0056ab"},
    "alert": {"$value": "{color.dangr}"},
    "loop": {"$value": "{color.loop}"},
    "wrong": {"$value": "#12"}
  }
}
"""
JSX = """export function Row({ item }) {
  return (
    <div onClick={() => open(item)}>
      <img src={item.src} />
      <input value={item.name} />
      <button><TrashIcon /></button>
      <button></button>
    </div>
  );
}
"""
GOOD = """<!DOCTYPE html>
<html lang="en"><head><title>Good</title></head>
<body><h1>Good</h1><h2>Part</h2>
<img src="a.png" alt=""><label for="a">Name</label><input id="a" name="full">
<button type="button">Go</button><a href="/x">Our prices</a>
<table><tr><th>a</th></tr><tr><td>1</td></tr></table></body></html>
"""


def finds_the_overlap(result: RunResult) -> None:
    found = [(one.rule, one.line) for one in result.findings]
    assert ("overlap", 5) in found
    assert ("overflow", 6) in found
    assert ("overlap", 4) not in found


def finds_problems_of_the_token_file(result: RunResult) -> None:
    expected = {"near-duplicate-color": 4, "undefined-token": 5, "token-cycle": 6, "token-value": 7}
    assert expected.items() <= rules(result).items()


def reads_jsx(result: RunResult) -> None:
    expected = {"click-without-key": 3, "image-alt": 4, "input-label": 5, "button-name": 7}
    assert rules(result) == expected


def finds_nothing(result: RunResult) -> None:
    assert result.findings == []


SCENARIOS: list[tuple[str, Case]] = [
    ("ui_designer", Case(returns_the_given_specification, inputs={"given": SPECIFICATION})),
    ("component_builder", Case(needs_a_model, files={"index.html": PAGE})),
    ("layout_designer", Case(finds_the_overlap, files={"layout.json": OVERLAPPING})),
    ("style_designer", Case(says_what_is_missing, files={"a.py": "x = 1\n"})),
    ("accessibility_auditor", Case(reads_jsx, files={"Row.tsx": JSX})),
    ("accessibility_auditor", Case(finds_nothing, files={"good.html": GOOD})),
    ("ux_reviewer", Case(finds_nothing, files={"good.html": GOOD})),
    ("design_critic", Case(says_what_is_missing, files={"a.py": "x = 1\n"})),
    ("prototype_builder", Case(needs_a_model, task="Build a checkout")),
    ("design_system", Case(finds_problems_of_the_token_file, files={"tokens.json": TOKENS})),
]
