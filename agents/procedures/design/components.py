"""The components that a screen may have: the words that ask for them, and their HTML."""

import html
import re
from dataclasses import dataclass

from agents.outputs.design import Component

BASE_STATES = ("loading", "empty", "error")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of component.

    Attributes:
        name: as in `Component.kind`.
        words: regular expression of the words in a task that ask for it.
        text: its usual label.
        action: what it does.
        states: states that it must have.
        brings: kinds that come with it.
    """

    name: str
    words: str
    text: str = ""
    action: str = ""
    states: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()


KINDS: tuple[Kind, ...] = (
    Kind("heading", r"\b(title|heading|headline)\b"),
    Kind("navigation", r"\b(nav(igation)?|menu|sidebar|tabs?)\b", "Main", "go to a section", ("current",)),
    Kind("search", r"\bsearch|find\b", "Search", "search", ("empty",), ("list",)),
    Kind("email", r"\b(e-?mail|log ?in|sign ?(in|up)|register|contact|newsletter)\b", "E-mail", "",
         ("invalid",)),
    Kind("password", r"\b(password|log ?in|sign ?in|register|sign ?up)\b", "Password", "", ("invalid",)),
    Kind("text", r"\b(name|first name|address|city|field)\b", "Name", "", ("invalid",)),
    Kind("number", r"\b(number|quantity|amount|price|age)\b", "Amount", "", ("invalid",)),
    Kind("date", r"\b(date|day|calendar|birthday|deadline)\b", "Date", "", ("invalid",)),
    Kind("textarea", r"\b(message|comment|note|description|feedback|post)\b", "Message", "", ("invalid",)),
    Kind("checkbox", r"\b(check ?box|agree|terms|remember|opt ?in|toggle|switch)\b", "I agree", "choose"),
    Kind("select", r"\b(drop ?down|select|choose|filter|sort|category|country)\b", "Choose", "choose"),
    Kind("upload", r"\b(upload|attach|drop zone)\b", "File", "upload", ("progress", "error")),
    Kind("table", r"\b(table|report|orders|invoices|records|spreadsheet)\b", "Records", "", ("empty",)),
    Kind("list", r"\b(list|feed|results|items|todo|to-do|tasks|inbox|cart)\b", "Items", "", ("empty",)),
    Kind("card", r"\b(cards?|tiles?|products?|gallery)\b", "Card", "open"),
    Kind("chart", r"\b(chart|graph|dashboard|statistics|analytics|trend)\b", "Chart", "", ("empty",)),
    Kind("image", r"\b(images?|photos?|pictures?|logo|avatar)\b", "Picture"),
    Kind("dialog", r"\b(dialog|modal|popup|confirm(ation)?|delete|remove)\b", "Are you sure?", "confirm",
         ("open", "closed")),
    Kind("progress", r"\b(progress|steps?|wizard|checkout)\b", "Step 1 of 3"),
    Kind("submit", r"\b(form|submit|send|save|log ?in|sign ?(in|up)|register|contact|pay|buy|checkout|"
         r"order|book)\b", "Send", "send", ("disabled", "busy")),
    Kind("button", r"\b(button|action)\b", "Continue", "continue", ("disabled",)),
    Kind("link", r"\b(link|forgot|privacy|imprint)\b", "More about it", "open"),
)  # fmt: skip
_BY_NAME = {kind.name: kind for kind in KINDS}
_FIELDS = frozenset(
    ["email", "password", "text", "number", "date", "textarea", "checkbox", "select", "upload"]
)


def components_of(task: str) -> list[Component]:
    """The components that a task's words ask for, in reading order, each once."""
    found = [kind for kind in KINDS if re.search(kind.words, task, re.IGNORECASE)]
    for kind in tuple(found):
        found += [_BY_NAME[name] for name in kind.brings if _BY_NAME[name] not in found]
    if any(kind.name in _FIELDS for kind in found) and _BY_NAME["submit"] not in found:
        found.append(_BY_NAME["submit"])
    order = {kind.name: number for number, kind in enumerate(KINDS)}
    return [
        Component(
            name=f"{kind.name}-{number}",
            kind=kind.name,
            text=_label(kind, task),
            action=kind.action,
            states=list(kind.states),
        )
        for number, kind in enumerate(sorted(found, key=lambda kind: order[kind.name]), 1)
    ]


def _label(kind: Kind, task: str) -> str:
    """The task's own quoted words for this kind, else the usual label."""
    if kind.name == "heading":
        return title_of(task)
    match = re.search(
        rf"(?:{kind.words})[^.\"“]{{0,20}}[\"“]([^\"”]{{1,60}})[\"”]", task, re.IGNORECASE
    )
    return match.groups()[-1] if match else kind.text


def title_of(task: str) -> str:
    """A screen's title: the task's first clause without its verb."""
    first = re.split(r"[.\n:;]", task.strip(), maxsplit=1)[0]
    words = re.sub(
        r"^(please\s+)?(design|build|create|make|write|specify|add|implement|draw)\s+(me\s+)?(an?|the)?\s*",
        "",
        first,
        flags=re.IGNORECASE,
    )
    words = re.split(r"\s+(?:with|that|which|for|where|so)\s+", words, maxsplit=1)[0].strip(" ,-")
    return (words[:1].upper() + words[1:])[:80] or "Screen"


def html_of(component: Component) -> str:
    """The component as accessible HTML; unknown kinds become a paragraph."""
    name, text = html.escape(component.name), html.escape(component.text)
    required = " required" if "invalid" in component.states else ""
    field_error = f'<p id="{name}-error" role="alert" hidden></p>' if required else ""
    described = f' aria-describedby="{name}-error"' if required else ""
    match component.kind:
        case "heading":
            return f"<h1>{text}</h1>"
        case "navigation":
            return (
                f'<nav aria-label="{text}"><ul><li>'
                '<a href="#main" aria-current="page">Start</a></li></ul></nav>'
            )
        case "search":
            return (
                f'<form role="search"><label for="{name}">{text}</label>'
                f'<input id="{name}" name="q" type="search"><button>{text}</button></form>'
            )
        case "email" | "password" | "text" | "number" | "date":
            complete = {"email": "email", "password": "current-password"}.get(component.kind)
            auto = f' autocomplete="{complete}"' if complete else ""
            return (
                f'<label for="{name}">{text}</label><input id="{name}" name="{name}" '
                f'type="{component.kind}"{auto}{required}{described}>{field_error}'
            )
        case "textarea":
            return (
                f'<label for="{name}">{text}</label>'
                f'<textarea id="{name}" name="{name}" rows="5"{required}{described}></textarea>{field_error}'
            )
        case "checkbox":
            return f'<label for="{name}"><input id="{name}" name="{name}" type="checkbox"> {text}</label>'
        case "select":
            return (
                f'<label for="{name}">{text}</label><select id="{name}" name="{name}">'
                "<option>First</option><option>Second</option></select>"
            )
        case "upload":
            return (
                f'<label for="{name}">{text}</label><input id="{name}" name="{name}" type="file">'
            )
        case "table":
            return (
                f'<table><caption>{text}</caption><thead><tr><th scope="col">Name</th>'
                '<th scope="col">Value</th></tr></thead>'
                "<tbody><tr><td>First</td><td>1</td></tr></tbody></table>"
            )
        case "list":
            return f'<section aria-label="{text}"><ul><li>First</li><li>Second</li></ul></section>'
        case "card":
            return f'<article><h2>{text}</h2><p>What it is.</p><a href="#{name}">Open {text}</a></article>'
        case "chart":
            return (
                f'<figure><svg role="img" viewBox="0 0 120 40"><title>{text}</title>'
                '<polyline points="0,30 40,20 80,25 120,5" fill="none" stroke="currentColor"/></svg>'
                f"<figcaption>{text}</figcaption></figure>"
            )
        case "image":
            return (
                f'<svg role="img" viewBox="0 0 80 60"><title>{text}</title>'
                '<rect width="80" height="60" fill="#ccd4dc"/></svg>'
            )
        case "dialog":
            return (
                f'<dialog id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{text}</h2>'
                '<form method="dialog"><button value="no">Cancel</button>'
                '<button value="yes">Yes</button></form></dialog>'
            )
        case "progress":
            return f'<p><progress id="{name}" aria-label="{text}" max="3" value="1"></progress> {text}</p>'
        case "submit":
            return f'<button type="submit">{text}</button>'
        case "button":
            return f'<button type="button">{text}</button>'
        case "link":
            return f'<a href="#{name}">{text}</a>'
        case _:
            return f"<p>{text}</p>"


def is_field(component: Component) -> bool:
    """Whether the component is a field of a form."""
    return component.kind in _FIELDS
