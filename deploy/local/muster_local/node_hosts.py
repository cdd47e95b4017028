"""The two processes that play nodes: KWOK, and the one that runs pods as real processes."""

import sys
from pathlib import Path
from typing import Final

from muster_local.certificates import API_SERVER_TO_NODES, KWOK, NODES
from muster_local.component import Command
from muster_local.hardware import KWOK_MARK
from muster_local.launch import Recipe

PROCESS_NODES: Final = "nodes"
KWOK_NODES: Final = "kwok"
KIND: Final = "nodes"


def process_nodes(directory: Path) -> Recipe:
    """All process nodes in one process; ready once its nodes are, which others check."""
    pki = directory / "pki"
    argv = (
        *(sys.executable, "-P", "-m", "muster_local.nodes"),
        *("--directory", str(directory / "nodes")),
        *("--kubeconfig", str(pki / f"{NODES.file}.kubeconfig")),
        *("--tls-cert", str(pki / "kubelet.crt")),
        *("--tls-key", str(pki / "kubelet.key")),
        *("--client-ca", str(pki / "ca.crt")),
        *("--client-name", API_SERVER_TO_NODES.user),
    )
    return Recipe(
        lambda _: Command(PROCESS_NODES, KIND, argv), is_ready=lambda _: True, has_port=False
    )


def kwok(program: Path, directory: Path) -> Recipe:
    """KWOK for the nodes that carry its mark, and no others."""
    argv = (
        # The kubelets that it stands for run on machines of their own, and take the control plane
        # no time.
        *("nice", "-n", "15", str(program)),
        f"--kubeconfig={directory / 'pki' / f'{KWOK.file}.kubeconfig'}",
        f"--config={Path(__file__).parent / 'manifests' / 'kwok.yaml'}",
        f"--manage-nodes-with-annotation-selector={KWOK_MARK}=fake",
        # It tells of every patch otherwise.
        "--v=WARN",
    )
    return Recipe(
        lambda _: Command(KWOK_NODES, KIND, argv), is_ready=lambda _: True, has_port=False
    )
