"""`read_entries`: the validated entries of a YAML file that comes with the program.

Data that people edit (patterns, names, formats) lies in YAML files beside the code that uses it. The files
are part of the program: an invalid one is a mistake of ours, and the error names the file and the entry.
"""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader takes a tenth of the other's time."""


class InvalidData(Exception):
    """A data file of the program is wrong; the message names the file and the entry."""


class Entry(BaseModel):
    """An entry of a data file: unknown fields are refused, and it does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_Entry = TypeVar("_Entry", bound=Entry)


def read_entries(path: Path, model: type[_Entry]) -> list[_Entry]:
    """The entries of a file that holds one entry or a list of them.

    Raises:
        InvalidData: the file is no YAML, or an entry does not fit the model.
    """
    try:
        data = yaml.load(path.read_bytes(), Loader=_LOADER)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise InvalidData(f"{path.name} is no YAML: {error}") from None
    entries = []
    for number, fields in enumerate(data if isinstance(data, list) else [data], 1):
        try:
            entries.append(model.model_validate(fields))
        except ValidationError as error:
            name = fields.get("id", number) if isinstance(fields, dict) else number
            raise InvalidData(f"{path.name}, entry {name}: {error}") from None
    return entries
