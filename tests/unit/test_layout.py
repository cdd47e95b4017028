"""The layout that DESIGN.md fixes, and the sizes that style.md asks for."""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = {
    "core": {"muster"},
    "operator": {"muster_operator"},
    "api": {"muster_db", "muster_api"},
    "sdk": {"muster_sdk", "muster_kube", "muster_cli"},
    "deploy/local": {"muster_local"},
}
PACKAGES = [ROOT / root / package for root, held in SOURCE_ROOTS.items() for package in held]
MODULES = sorted(module for package in PACKAGES for module in package.rglob("*.py"))
TEST_MODULES = sorted((ROOT / "tests").rglob("*.py"))
FORBIDDEN_NAMES = {
    "utils",
    "util",
    "common",
    "helpers",
    "helper",
    "manager",
    "info",
    "data",
    "misc",
}
MAX_LINES = 400


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("root", SOURCE_ROOTS)
def test_a_source_root_holds_its_packages_and_nothing_else(root):
    found = {entry.name for entry in (ROOT / root).iterdir() if entry.name != "__pycache__"}

    assert SOURCE_ROOTS[root] == found


def test_our_operator_folder_does_not_replace_pythons_own_module():
    started_from_the_root = "import operator; print(operator.__file__)"

    found = subprocess.run(
        [sys.executable, "-c", started_from_the_root],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()

    assert not (ROOT / "operator" / "__init__.py").exists()
    assert importlib.import_module("operator").__file__ == found


@pytest.mark.parametrize(
    "name",
    ["Makefile", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "requirements.lock"],
)
def test_the_top_level_has(name):
    assert (ROOT / name).read_text().strip()


def test_the_licence_is_apache_2():
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_the_wheel_names_each_package():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]

    assert sorted(SOURCE_ROOTS) == sorted(config["dev-mode-dirs"])
    assert sorted(map(relative, PACKAGES)) == sorted(config["targets"]["wheel"]["packages"])


# What is foreign, and the modules that may import it. Nothing else learns its words.
FOREIGN = {
    "kubernetes": {"muster_kube.client"},
    "httpx2": {"muster_cli.api", "muster_sdk.channel"},
    "kopf": {"muster_operator.handlers", "muster_operator.run"},
    "cryptography": {"muster_local.certificates"},
    "typer": {"muster_cli", "muster_local.commands", "muster_local.bench.commands"},
    "sqlalchemy": {"muster_db"},
    "fastapi": {"muster_api"},
    "torch": {"muster_sdk"},
    "matplotlib": {"muster_cli.gantt"},
}


def imports_of(module):
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name.partition(".")[0]


def dotted(module):
    package = next(p for p in PACKAGES if module.is_relative_to(p))
    return ".".join(module.relative_to(package.parent).with_suffix("").parts)


@pytest.mark.parametrize("foreign", FOREIGN)
def test_few_modules_know(foreign):
    users = {dotted(module) for module in MODULES if foreign in imports_of(module)}
    allowed = FOREIGN[foreign]

    assert [] == sorted(
        user for user in users if not any(user == a or user.startswith(f"{a}.") for a in allowed)
    )


def test_no_module_is_longer_than_a_person_reads():
    long = {
        relative(module): lines
        for module in [*MODULES, *TEST_MODULES]
        if (lines := len(module.read_text().splitlines())) > MAX_LINES
    }

    assert {} == long


def test_no_module_has_a_name_that_says_nothing():
    vague = [
        relative(module)
        for module in MODULES
        if FORBIDDEN_NAMES & {module.stem, *module.relative_to(ROOT).parts}
    ]

    assert [] == vague


def test_every_module_says_what_it_is_for():
    silent = [
        relative(module)
        for module in MODULES
        if ast.get_docstring(ast.parse(module.read_text())) is None
    ]

    assert [] == silent


def test_tests_live_in_tests_only_and_their_names_are_unique():
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    names = [test.name for test in tests]

    assert [] == [relative(m) for m in MODULES if m.name.startswith("test_")]
    assert [] == sorted({name for name in names if names.count(name) > 1})
    assert [] == [relative(p) for p in (ROOT / "tests").rglob("__init__.py")]
