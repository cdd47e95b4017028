"""The command line is a contract: an option that goes breaks scripts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from muster_cli import demo, main

ROOT = Path(__file__).resolve().parents[3]
ACCESS = {"-n", "--namespace", "--context", "--kubeconfig"}
OUTPUT = {"-o", "--output"}
OPTIONS = {
    "submit": {"-f", "--follow", "--dry-run", "--snapshot", *ACCESS, *OUTPUT},
    "jobs": {"-A", "--all-namespaces", *ACCESS, *OUTPUT},
    "describe": {"-f", "--follow", *ACCESS, *OUTPUT},
    "logs": {"-f", "--follow", "--rank", "--replica", "--attempt", *ACCESS},
    "cost": {"--by", *ACCESS, *OUTPUT},
    "cancel": ACCESS,
    "explain": {"--snapshot", *ACCESS, *OUTPUT},
    "queues": {"--snapshot", "--context", "--kubeconfig", *OUTPUT},
    "nodes": {"--snapshot", "--context", "--kubeconfig", *OUTPUT},
    "snapshot": {"--context", "--kubeconfig"},
    "replay": {"--context", "--kubeconfig", *OUTPUT},
    "simulate": {"--check", "--until", "--plot", *OUTPUT},
    "version": OUTPUT,
    "local up": {
        "--name",
        "--nodes",
        "--gpus",
        "--racks",
        "--gpu-model",
        "--kwok-nodes",
        "--with-scheduler",
        "--no-platform",
    },
    "local down": {"--name"},
    "local status": {"--name", *OUTPUT},
    "local kubeconfig": {"--name"},
    "local logs": {"--name", "-f", "--follow"},
    "local add-nodes": {"--name"},
    "local kill-node": {"--name"},
    "bench cluster": {
        "--nodes",
        "--gangs",
        "--gang-size",
        "--gpus-per-pod",
        "--required",
        "--duration",
        *OUTPUT,
    },
    "bench schedule": {"--shape", *OUTPUT},
    "bench trace": {
        "--nodes",
        "--gpus",
        "--order",
        "--restart-cost",
        "--limits",
        "--tenants",
        "--cut",
        *OUTPUT,
    },
}


def leaves(path, command):
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, each in inner.items():
        yield from leaves(f"{path} {name}", each)


def test_the_options_are_those_that_were_agreed():
    found = {
        path: {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o[0] == "-"}
        for name in main.COMMANDS
        for path, command in leaves(name, main.load(name))
    }

    assert OPTIONS == {path: options - {"--help"} for path, options in found.items()}


@pytest.mark.parametrize("name", [n for n in main.COMMANDS if n not in {"local", "bench"}])
def test_every_command_explains_itself_with_an_example(name):
    words = main.load(name).help

    assert re.search(rf"Example: muster {name}\b", words)


def test_help_does_not_wait_for_what_it_does_not_need():
    script = """
import sys
from muster_cli import main
main.run(["--help"])
print({"kubernetes", "aiohttp", "httpx2", "muster_local", "yaml"} & set(sys.modules))
"""

    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout

    assert "set()" == printed.splitlines()[-1]


def test_the_demo_knows_its_example():
    script = (ROOT / "deploy/examples/digits.py").read_text()
    documents = list(yaml.safe_load_all((ROOT / "deploy/examples/digits.yaml").read_text()))
    job = next(d for d in documents if d["kind"] == "TrainingJob")
    volumes = job["spec"]["template"]["spec"]["volumes"]

    assert f'"DIGITS_EPOCHS", "{demo.EPOCHS}"' in script
    assert demo.JOB == job["metadata"]["name"]
    assert demo.VICTIM < job["spec"]["replicas"]
    assert str(demo.CHECKPOINTS) in [v["hostPath"]["path"] for v in volumes if "hostPath" in v]
