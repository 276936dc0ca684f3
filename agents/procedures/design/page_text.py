"""`page_of`: a screen specification as one HTML page without scripts or outside requests."""

import html

from agents.outputs.design import UISpec
from agents.procedures.design.components import html_of, is_field

_STYLE = """
  :root { --text: #1d2733; --ground: #ffffff; --action: #0b5cad; --line: #7a8794; --gap: 16px; }
  body { margin: 0 auto; max-width: 40rem; padding: var(--gap); color: var(--text);
         background: var(--ground); font: 1rem/1.5 system-ui, sans-serif; }
  label { display: block; margin-top: var(--gap); }
  input, select, textarea { width: 100%; box-sizing: border-box; min-height: 2.75rem; font: inherit;
         border: 1px solid var(--line); border-radius: 4px; padding: 8px; }
  input[type="checkbox"] { width: 1.5rem; min-height: 1.5rem; }
  button { margin-top: var(--gap); min-height: 2.75rem; padding: 8px 16px; font: inherit;
         color: var(--ground); background: var(--action); border: 0; border-radius: 4px; }
  :focus-visible { outline: 3px solid var(--action); outline-offset: 2px; }
  table { width: 100%; border-collapse: collapse; } th, td { text-align: left; padding: 8px; }
""".rstrip()


def page_of(spec: UISpec) -> str:
    """The page. Fields and their submit button stand in one form with a place for errors."""
    fields = [one for one in spec.components if is_field(one) or one.kind == "submit"]
    others = [one for one in spec.components if one not in fields]
    body = [html_of(one) for one in others if one.kind != "heading"]
    if fields:
        inner = "\n      ".join(html_of(one) for one in fields)
        body.append(
            f'<form>\n      <p class="error" role="alert" hidden></p>\n      {inner}\n    </form>'
        )
    title = html.escape(spec.title or "Screen")
    states = "\n    ".join(
        f'<template id="state-{html.escape(state)}"><p role="status">{html.escape(state.capitalize())}</p>'
        "</template>"
        for state in spec.states
    )
    parts = "\n    ".join(body)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>{title}</title>
  <style>{_STYLE}
  </style>
</head>
<body>
  <main id="main">
    <h1>{title}</h1>
    {parts}
    {states}
  </main>
</body>
</html>
"""
