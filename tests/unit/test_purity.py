"""The core computes and touches nothing: a small reading of its source, beside import-linter's."""

import ast
import sys
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "core" / "muster"
MODULES = sorted(CORE.rglob("*.py"))

ALLOWED_IMPORTS = {
    "__future__",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "graphlib",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "numpy",
    "numpy.typing",
    "re",
    "statistics",
    "string",
    "struct",
    "types",
    "typing",
    "urllib.parse",
}
FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}
FORBIDDEN_METHODS = {"now", "utcnow", "today", "getenv", "deepcopy"}


def impurities(source):
    """What in *source* reads or changes the world, as (line, what)."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                for name in names:
                    yield from _imported(node, name.name)
            case ast.ImportFrom(module=module, level=0):
                yield from _imported(node, module)
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
                yield node.lineno, f"calls {name}()"
            case ast.Call(func=ast.Attribute(attr=name)) if name in FORBIDDEN_METHODS:
                yield node.lineno, f"calls .{name}()"
            case ast.Attribute(attr="environ"):
                yield node.lineno, "reads the environment"
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                yield node.lineno, "is asynchronous"
            case ast.Global():
                yield node.lineno, "keeps state in a global"


def _imported(node, module):
    if module.split(".")[0] != "muster" and module not in ALLOWED_IMPORTS:
        yield node.lineno, f"imports {module}"


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(CORE)))
def test_the_core_is_pure(module):
    assert [] == sorted(impurities(module.read_text()))


IMPURE = {
    "a file": "open('x')",
    "a print": "print(1)",
    "the clock": "from datetime import datetime\ndatetime.now()",
    "the time module": "import time",
    "the environment": "import os\nos.environ['A']",
    "a coroutine": "async def f(): ...",
    "a log": "import logging",
    "a foreign package": "import yaml",
}


@pytest.mark.parametrize("source", IMPURE.values(), ids=IMPURE)
def test_this_check_finds(source):
    assert list(impurities(source))


def test_what_is_allowed_exists():
    assert {"numpy"} == {
        name.split(".")[0]
        for name in ALLOWED_IMPORTS
        if name.split(".")[0] not in sys.stdlib_module_names
    }
