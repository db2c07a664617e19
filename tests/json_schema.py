"""A validator for the part of JSON Schema (draft 2020-12) that our schemas use; any other word in one is an error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, Any] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
_KNOWN = {
    *("$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "additionalProperties"),
    *("items", "minItems", "maxItems", "minimum", "pattern", "enum", "const", "anyOf", "dependentRequired"),
}


def faults(value: Any, schema: Any) -> list[str]:
    """What is wrong with a value, with the place of each fault; empty if it is valid."""
    return list(_faults(value, schema, schema, "$"))


def _faults(value: Any, schema: Any, root: Any, at: str) -> Iterator[str]:
    assert set(schema) <= _KNOWN, sorted(set(schema) - _KNOWN)
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        yield from _faults(value, root["$defs"][name], root, at)
    if "anyOf" in schema and all(list(_faults(value, each, root, at)) for each in schema["anyOf"]):
        yield f"{at}: fits none of anyOf, {list(_faults(value, schema['anyOf'][0], root, at))[:1]}"
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, kind) for kind in kinds):
            yield f"{at}: {value!r} is no {' or '.join(kinds)}"
            return
    if "const" in schema and value != schema["const"]:
        yield f"{at}: not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{at}: {value} is below {schema['minimum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{at}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, list):
        yield from _list_faults(value, schema, root, at)
    if isinstance(value, dict):
        yield from _object_faults(value, schema, root, at)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind in {"number", "integer"}:
        return False
    return isinstance(value, _TYPES[kind])


def _list_faults(value: list[Any], schema: Any, root: Any, at: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{at}: {len(value)} items"
    for index, each in enumerate(value):
        yield from _faults(each, schema.get("items", {}), root, f"{at}[{index}]")


def _object_faults(value: dict[str, Any], schema: Any, root: Any, at: str) -> Iterator[str]:
    known = schema.get("properties", {})
    yield from (f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, others in schema.get("dependentRequired", {}).items():
        yield from (f"{at}: {each} is missing beside {name}" for each in others if name in value and each not in value)
    for name, each in value.items():
        more = schema.get("additionalProperties", {})
        if name in known:
            yield from _faults(each, known[name], root, f"{at}.{name}")
        elif more is False:
            yield f"{at}: {name} is unknown"
        elif isinstance(more, dict):
            yield from _faults(each, more, root, f"{at}.{name}")
