"""`list_settings`: every setting with its present value, for the screen."""

from app.settings.options import GROUPS
from app.settings.row import Row, rows_of, size
from app.settings.settings import ROWS, Settings
from app.settings.shown_setting import ShownSetting
from app.settings.sources import TABLES, flag_of
from app.text.byte_size import format_size

_OTHERS = "Without a flag"


def list_settings(settings: Settings) -> tuple[ShownSetting, ...]:
    """All settings in the order of the documentation: those with an option by groups, then the others."""
    headings = {
        name: heading for heading, one in GROUPS.values() for name in rows_of(one) if name in ROWS
    }
    names = [*headings, *(name for name in ROWS if name not in headings)]
    return tuple(
        ShownSetting(
            name,
            headings.get(name, _OTHERS),
            _value(getattr(settings, name), ROWS[name]),
            ROWS[name].help,
            ROWS[name].words,
            flag_of(name) if name in headings else _written(name),
            is_switch=Settings.model_fields[name].annotation in (bool, bool | None),
        )
        for name in names
    )


def _written(name: str) -> str:
    table, _, member = name.partition("_")
    return f"[{table}] {member}" if table in TABLES else name


def _value(value: object, row: Row) -> str:
    if row.secret:
        return "set" if value else ""
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and row.read is size:
        return format_size(value)
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return (
        str(value) if isinstance(value, str | int | float) or hasattr(value, "__fspath__") else ""
    )
