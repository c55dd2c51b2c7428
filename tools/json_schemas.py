"""Write docs/schemas: for each command what its ``--json`` object holds, as a JSON schema (draft 7).

    python -m tools.json_schemas

A schema is made of what the command printed: in the tests of the command line, and in the commands of
`tools.compare_outputs`. A key is required if each of these objects had it. What a key means stands in
docs/schemas/keys.toml; a key without a line there is an error. The tests of the command line (tests/cli/conftest.py)
hold each object that they see to the schema of its command, so a new key is noticed at once.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "schemas"
PARTED = ("task", "mixer", "demo")
"""Commands whose next word belongs to the name."""
MAPS = (
    "collection.counts",
    "collection.floor",
    "collection.crowd",
    "collection.promise",
    "predict.counts",
    "reproduce.written",
    "task verify.floor",
)
"""Objects whose keys are names of levels or classes: whoever asks chooses them."""
SHARED = ("guarantee", "setting")
"""Objects that occur at many places with the same meaning; a schema defines each once."""
TYPES = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
LANGUAGE = re.compile("[a-z]{2}")


def command_of(words: Sequence[str]) -> str:
    """Return the name of the command that these words call.

    Examples
    --------
    >>> command_of(["task", "status", "--json"]), command_of(["mean", "people.csv", "--json"])
    ('task status', 'mean')
    """
    parted = words[0] in PARTED and len(words) > 1 and not words[1].startswith("-")
    return " ".join(words[: 1 + parted])


class Shape:
    """What was seen at one place: the plain types, the keys of the objects, and what the lists hold."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.types: set[str] = set()
        self.keys: dict[str, Shape] = {}
        self.met: dict[str, int] = {}
        self.objects = 0
        self.items: Shape | None = None

    def add(self, value: Any) -> None:
        """Add a value that stands here."""
        if isinstance(value, dict):
            self.objects += 1
            for key, inner in value.items():
                self.met[key] = self.met.get(key, 0) + 1
                self.keys.setdefault(key, Shape(f"{self.path}.{key}")).add(inner)
        elif isinstance(value, list):
            self.items = self.items or Shape(self.path)
            for inner in value:
                self.items.add(inner)
        else:
            self.types.add("inf" if value == "inf" else TYPES[type(value)])

    def schema(self, shared: Mapping[str, Shape]) -> dict[str, Any]:
        """Return the schema of the values that were seen."""
        either: list[dict[str, Any]] = []
        plain = sorted(self.types - {"inf"})
        if "number" in plain or "inf" in self.types:  # wherever a number stands, infinity may
            either += [{"type": "number"}, {"const": "inf"}]
        either += [{"type": name} for name in plain if name != "number"]
        if self.items is not None:
            either.append({"type": "array", "items": self.items.schema(shared)})
        if self.objects:
            name = self.path.rpartition(".")[2]
            either.append({"$ref": f"#/definitions/{name}"} if name in shared else self.object(shared))
        if len(either) == 1:
            return either[0]
        return {"anyOf": either} if either else {}

    def object(self, shared: Mapping[str, Shape]) -> dict[str, Any]:
        """Return the schema of the objects that were seen."""
        by_language = bool(self.keys) and all(LANGUAGE.fullmatch(key) for key in self.keys)
        if by_language or self.path.endswith(MAPS):
            values = Shape(self.path + ".value")
            for each in self.keys.values():
                values.types |= each.types
                values.items = values.items or each.items
            return {"type": "object", "additionalProperties": values.schema(shared)}
        return {
            "type": "object",
            "properties": {
                key: {"description": meaning(inner.path), **inner.schema(shared)}
                for key, inner in sorted(self.keys.items())
            },
            "required": sorted(key for key, times in self.met.items() if times == self.objects),
        }


def closed(schema: Any) -> Any:
    """Return a schema that knows no other key: a later version may add some, but this one has none besides."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: closed(part) for key, part in schema.items()}
    if "required" in schema and isinstance(schema["required"], list):
        strict["additionalProperties"] = False
    return strict


def meaning(path: str) -> str:
    """Return what the key at the end of a path means; the longest end of the path that has a line counts."""
    parts = path.split(".")
    for first in range(len(parts)):
        line = ".".join(parts[first:])
        if line in meanings():
            return meanings()[line]
    raise KeyError(f"docs/schemas/keys.toml has no line for {parts[-1]!r} ({path}); say there what it means")


@cache
def meanings() -> dict[str, str]:
    """Return the lines of docs/schemas/keys.toml."""
    return tomllib.loads((FOLDER / "keys.toml").read_text(encoding="utf-8"))


def shared_of(name: str, value: Any, shared: dict[str, Shape]) -> None:
    """Add every object that stands under a shared name to that name's shape."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in SHARED and isinstance(inner, dict):
                shared.setdefault(key, Shape(key)).add(inner)
            shared_of(key, inner, shared)
    elif isinstance(value, list):
        for inner in value:
            shared_of(name, inner, shared)


def schema_of(command: str, objects: Sequence[Any]) -> dict[str, Any]:
    """Return the schema of a command's objects."""
    top, shared = Shape(command), dict[str, Shape]()
    for value in objects:
        top.add(value)
        shared_of("", value, shared)
    shared = {name: shape for name, shape in shared.items() if name != command}
    written = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"shuffledp {command} --json",
        **top.object(shared),
    }
    if shared:
        written["definitions"] = {name: shape.object(shared) for name, shape in sorted(shared.items())}
    return written


def seen() -> dict[str, list[Any]]:
    """Run the tests of the command line and the compared commands; return their objects by command."""
    from tools import compare_outputs

    found: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        places = os.environ | {"SHUFFLEDP_JSON_SEEN": folder}
        for words in (["tests/cli", "-n", "2", "-m", "not spark"], ["tests/cli/test_demo_collection.py"]):
            subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, env=places, check=False)
        for path in sorted(Path(folder).iterdir()):
            for line in path.read_text(encoding="utf-8").splitlines():
                command, value = json.loads(line)
                found.setdefault(command, []).append(value)
    table = str(ROOT / "src" / "shuffledp" / "data" / "adult.parquet")
    for words in compare_outputs.commands():
        status, said = compare_outputs.answer(ROOT, table, words)
        if status == 0 and words[0] not in ("reproduce", "--help"):
            said = said.replace(b'"cpu_seconds": SECONDS', b'"cpu_seconds": 0.0')
            value, _ = json.JSONDecoder().raw_decode(said.decode())
            named = [word for word in words if word not in ("TABLE", "SEED")]
            found.setdefault(command_of(named), []).append(value)
    return found


def main() -> None:
    """Write the schemas, or say which keys have no meaning yet."""
    schemas, unknown = {}, []
    for command, objects in sorted(seen().items()):
        try:
            schemas[command] = schema_of(command, objects)
        except KeyError as found:
            unknown.append(str(found.args[0]))
    if unknown:
        sys.exit("\n".join(unknown))
    for command, written in schemas.items():
        text = json.dumps(written, indent=1)
        (FOLDER / f"{command.replace(' ', '-')}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
