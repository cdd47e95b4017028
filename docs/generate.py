"""Writes `docs/reference/` from what it describes, so that the two cannot differ.

    python docs/generate.py            write the pages
    python docs/generate.py --check    exit 1, and name the pages, where they are not up to date

Nothing is explained here: the words are the docstrings, help texts and schema descriptions.
"""

import argparse
import ast
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import typer
import yaml
from fastapi import FastAPI

from muster_api.app import FEATURES
from muster_cli import main

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = ROOT / "docs" / "reference"
SOURCES: Final = ("core", "operator", "api", "sdk", "deploy/local")
SETTINGS: Final = {
    "Operator: `python -m muster_operator`": ("operator/muster_operator/settings.py", "Settings"),
    "API: `python -m muster_api`": ("api/muster_api/settings.py", "ApiSettings"),
    "Recorder: `python -m muster_api.recorder`": (
        "api/muster_api/settings.py",
        "RecorderSettings",
    ),
}
METRIC_KINDS: Final = {
    "Counter": "counter",
    "counter": "counter",
    "Gauge": "gauge",
    "Histogram": "histogram",
    "seconds": "histogram",
}
"""What the sources call to make a metric, and what Prometheus calls it."""
CRDS: Final = ("trainingjobs", "queues", "topologies")


def command_page() -> str:
    """Every command with its arguments and options."""
    lines = ["# The `muster` command", "", "Also callable as `kubectl muster`."]
    for path, command in commands():
        context = command.make_context(path, ["--help"], resilient_parsing=True)
        lines += ["", f"## `{path}`", "", *_prose(command.help or ""), ""]
        rows = []
        for parameter in command.params:
            if parameter.name in {"help", "install_completion", "show_completion"}:
                continue
            record = parameter.get_help_record(context)
            if record is not None:
                rows.append((f"`{record[0]}`", record[1]))
        lines += _table(("argument or option", "what it does"), rows) if rows else []
    return _page(lines)


def commands() -> Iterator[tuple[str, Any]]:
    """The path and the command of each leaf of the tree."""
    for name in main.COMMANDS:
        yield from _leaves(f"muster {name}", main.load(name))


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, each in inner.items():
        yield from _leaves(f"{path} {name}", each)


def settings_page() -> str:
    """The environment variables that each process reads."""
    lines = ["# Settings", "", "Read once at the start. An unknown `MUSTER_*` variable stops it."]
    for heading, (file, name) in SETTINGS.items():
        rows = [
            (f"`{_variable(field)}`", f"`{default}`", words)
            for field, default, words in _fields(ROOT / file, name)
        ]
        lines += ["", f"## {heading}", "", *_table(("variable", "default", "what it is"), rows)]
    return _page(lines)


def _variable(field: str) -> str:
    return "KUBECONFIG" if field == "kubeconfig" else f"MUSTER_{field.upper()}"


def _fields(file: Path, name: str) -> Iterator[tuple[str, str, str]]:
    """Name, default and docstring of the fields of a dataclass."""
    tree = ast.parse(file.read_text())
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    for field, words in pairwise(body):
        match field, words:
            case (
                ast.AnnAssign(target=ast.Name(id=named), value=ast.expr() as default),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                yield named, ast.unparse(default), _line(said)


def metrics_page() -> str:
    """The metrics of each process."""
    rows = sorted(set(metrics()))
    return _page(
        [
            "# Metrics",
            "",
            "Operator, API and recorder each serve theirs at `/metrics`, beside `/healthz` and "
            "`/readyz`.",
            "",
            *_table(("metric", "type", "labels", "what it counts"), rows),
        ]
    )


def metrics() -> Iterator[tuple[str, str, str, str]]:
    """Name, type, labels and words of every metric that the sources define."""
    for root in SOURCES:
        for file in sorted((ROOT / root).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Name(id=kind),
                        args=[
                            ast.Constant(value=str(name)),
                            ast.Constant(value=str(words)),
                            *more,
                        ],
                    ) if name.startswith("muster_") and kind in METRIC_KINDS:
                        labels = [
                            str(label.value)
                            for each in more
                            if isinstance(each, ast.Tuple)
                            for label in each.elts
                            if isinstance(label, ast.Constant)
                        ]
                        yield (
                            _exposed(name, kind),
                            METRIC_KINDS[kind],
                            ", ".join(labels),
                            _line(words),
                        )


def _exposed(name: str, kind: str) -> str:
    is_counter = METRIC_KINDS[kind] == "counter" and not name.endswith("_total")
    return f"`{name}{'_total' if is_counter else ''}`"


def objects_page() -> str:
    """Every field of the three kinds."""
    lines = ["# Objects", "", "`kubectl explain tj.spec` says the same."]
    for name in CRDS:
        crd = yaml.safe_load((ROOT / "charts/muster/crds" / f"{name}.yaml").read_text())
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        lines += ["", f"## {crd['spec']['names']['kind']}", "", *_prose(schema["description"])]
        for part in ("spec", "status"):
            if part in schema["properties"]:
                rows = list(_schema(schema["properties"][part], part))
                lines += ["", f"### {part}", "", *_table(("field", "type", "what it is"), rows)]
    return _page(lines)


def _schema(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for name, inner in (schema.get("properties") or {}).items():
        where = f"{path}.{name}"
        kind = str(inner.get("type") or "any")
        items = inner.get("items") or {}
        if items:
            kind = f"list of {items.get('type', 'any')}"
        words = _line(str(inner.get("description") or ""))
        allowed = inner.get("enum") or items.get("enum")
        if allowed:
            words = f"{words} One of {', '.join(f'`{value}`' for value in allowed)}."
        if "default" in inner:
            words = f"{words} Default: `{inner['default']}`."
        yield f"`{where}`", kind, words
        yield from _schema(inner, where)
        yield from _schema(items, f"{where}[]")


def routes_page() -> str:
    """Every route of the API."""
    app = FastAPI()
    for feature in FEATURES:
        app.include_router(feature.router)
    rows = [
        (f"`{method.upper()} {path}`", operation["summary"], _line(operation["description"]))
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    ]
    return _page(
        [
            "# Routes of the API",
            "",
            "`/docs` of a running API shows them with their schemas and examples; `/openapi.json` "
            "is the document. Every error is a problem document (RFC 9457).",
            "",
            *_table(("route", "summary", "what it does"), rows),
        ]
    )


@dataclass(frozen=True, slots=True)
class Generated:
    """A page and what makes it."""

    name: str
    make: Callable[[], str]


GENERATED: Final = (
    Generated("commands.md", command_page),
    Generated("settings.md", settings_page),
    Generated("metrics.md", metrics_page),
    Generated("objects.md", objects_page),
    Generated("routes.md", routes_page),
)


def _page(lines: Iterable[str]) -> str:
    return "\n".join(["<!-- Written by docs/generate.py. -->", *lines]) + "\n"


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    drawn = [" | ".join(headings), " | ".join("---" for _ in headings)]
    drawn += [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return [f"| {row} |" for row in drawn]


def _prose(text: str) -> list[str]:
    return ["\n".join(line.strip() for line in text.strip().splitlines())]


def _line(text: str) -> str:
    return " ".join(text.split())


def write(*, check: bool) -> int:
    """Write the pages, or with *check* only compare them; the exit code."""
    stale = []
    for page in GENERATED:
        file = PAGES / page.name
        text = page.make()
        if not file.exists() or file.read_text() != text:
            stale.append(str(file.relative_to(ROOT)))
            if not check:
                file.write_text(text)
    if check and stale:
        typer.echo(f"not up to date: {', '.join(stale)}; run python docs/generate.py", err=True)
        return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    sys.exit(write(check=parser.parse_args().check))
