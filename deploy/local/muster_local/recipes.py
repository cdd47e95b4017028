"""How each program of the control plane is called."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from muster_local.component import CONTROL_PLANE, Command, Component
from muster_local.launch import Recipe
from muster_local.ports import LOOPBACK
from muster_local.probes import answers, answers_on_socket

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
CONTROLLERS: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"

_SOCKET: Final = "etcd.sock:0"
"""A socket in the cluster's directory, as etcd and its clients name one. A port would let every
user of this machine write pods, which run with our rights."""
NODE_GRACE_SECONDS: Final = 50
"""Kubernetes' own default."""
_SERVICE_RANGE: Final = "10.96.0.0/16"
_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
# EndpointSlices refuse loopback addresses, and all our pods have one.
_WITHOUT: Final = (
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
)


def etcd(program: Path, directory: Path) -> Recipe:
    """The store, without fsync: its data survives a killed process, not a power cut."""
    argv = (
        str(program),
        "--name=muster",
        f"--data-dir={directory / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls=unix://{_SOCKET}",
        f"--advertise-client-urls=unix://{_SOCKET}",
        "--listen-peer-urls=unix://etcd-peer.sock:0",
        # Nobody ever dials it: it is alone.
        "--initial-advertise-peer-urls=http://localhost:1",
        "--initial-cluster=muster=http://localhost:1",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=10m",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
    )
    socket = directory / _SOCKET

    def command(_: int) -> Command:
        # A killed one leaves its socket, which would look as if it were ready.
        socket.unlink(missing_ok=True)
        return Command(ETCD, CONTROL_PLANE, argv)

    return Recipe(command, is_ready=lambda _: answers_on_socket(socket, "/health"), has_port=False)


def api_server(program: Path, directory: Path) -> Recipe:
    """The API server: RBAC, service account tokens, and the admission plugins that are default."""
    pki = directory / "pki"
    argv = (
        str(program),
        f"--etcd-servers=unix://{_SOCKET}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        # There is no endpoint to publish: it would be a loopback address.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={pki / 'service-account.pub'}",
        f"--service-account-signing-key-file={pki / 'service-account.key'}",
        # The default for tokens of pods adds a year to what was asked for.
        "--service-account-extend-token-expiration=false",
        "--authorization-mode=RBAC",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
    )

    def command(port: int) -> Command:
        url = f"https://{LOOPBACK}:{port}"
        return Command(API_SERVER, CONTROL_PLANE, (*argv, f"--secure-port={port}"), url=url)

    return Recipe(command, is_ready=_answers("/readyz", pki))


def controllers(
    program: Path, directory: Path, *, node_grace_seconds: int = NODE_GRACE_SECONDS
) -> Recipe:
    """The controller manager with all controllers but the endpoint ones.

    Node lifecycle takes the not-ready taint off nodes, and quota lets pods under a quota in.
    """
    pki = directory / "pki"
    argv = (
        str(program),
        f"--kubeconfig={pki / 'controller-manager.kubeconfig'}",
        f"--controllers=*,{','.join(f'-{name}' for name in _WITHOUT)}",
        f"--service-account-private-key-file={pki / 'service-account.key'}",
        # Each controller has its rights by its own account; their shared user has next to none.
        "--use-service-account-credentials",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--node-monitor-grace-period={node_grace_seconds}s",
        "--leader-elect=false",
        # The defaults are for a manager that shares its API server with others.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    )
    return _serving(CONTROLLERS, argv, directory)


def scheduler(program: Path, directory: Path) -> Recipe:
    """kube-scheduler, for pods that Muster pins to a node but does not bind itself."""
    argv = (
        str(program),
        f"--kubeconfig={directory / 'pki' / 'scheduler.kubeconfig'}",
        "--leader-elect=false",
        "--kube-api-qps=5000",
        "--kube-api-burst=10000",
    )
    return _serving(SCHEDULER, argv, directory)


def _serving(name: str, argv: tuple[str, ...], directory: Path) -> Recipe:
    """A component that makes its own certificate and tells its health on a port."""

    def command(port: int) -> Command:
        return Command(
            name,
            CONTROL_PLANE,
            (
                *argv,
                f"--bind-address={LOOPBACK}",
                f"--secure-port={port}",
                f"--cert-dir={directory / 'pki' / name}",
            ),
            url=f"https://{LOOPBACK}:{port}",
        )

    return Recipe(command, is_ready=_answers("/healthz", None))


def _answers(path: str, pki: Path | None) -> Callable[[Component], bool]:
    return lambda component: answers(component.url or "", path, pki=pki)
