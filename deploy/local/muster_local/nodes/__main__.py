"""`python -m muster_local.nodes --directory DIR --kubeconfig FILE`: all nodes of a cluster.

Its identity in the API needs: nodes and nodes/status (create, get, patch, delete), leases (create,
get, patch), pods (list, watch, delete), pods/status (patch), configmaps and secrets (get),
serviceaccounts/token (create), events (create).

SIGTERM ends it and every process of its pods; after SIGKILL the pods live on and the next start
adopts them.
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from muster.errors import MusterError
from muster_local.nodes.host import run
from muster_local.nodes.settings import Settings, Tls


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; the exit status."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    try:
        asyncio.run(run(_settings(arguments)))
    except MusterError as error:
        print(error, file=sys.stderr)  # noqa: T201 -- the one line a person reads
        return 1
    return 0


def _settings(arguments: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(prog="muster_local.nodes", description="Process nodes.")
    parser.add_argument("--directory", type=Path, required=True, help="holds nodes.json")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--tls-cert", type=Path, help="of the log endpoint, for 127.0.0.1")
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument(
        "--client-ca", type=Path, help="signed the API server's client certificate"
    )
    parser.add_argument(
        "--client-name",
        default="kube-apiserver-kubelet-client",
        help="common name of that certificate; nobody else may read logs (%(default)s)",
    )
    parser.add_argument(
        "--port", type=int, default=0, help="of the log endpoint; 0 takes a free one"
    )
    parser.add_argument(
        "--restart-seconds",
        type=float,
        default=10.0,
        help="first pause before a container is restarted a second time (%(default)s)",
    )
    parser.add_argument(
        "--no-namespaces",
        action="store_true",
        help="substitute paths and names even where mount namespaces are allowed",
    )
    given = parser.parse_args(arguments)
    tls = (given.tls_cert, given.tls_key, given.client_ca)
    if any(tls) and not all(tls):
        parser.error("--tls-cert, --tls-key and --client-ca go together")
    return Settings(
        directory=given.directory.absolute(),
        kubeconfig=given.kubeconfig,
        tls=Tls(*tls, client_name=given.client_name) if all(tls) else None,
        port=given.port,
        restart_seconds=given.restart_seconds,
        may_use_namespaces=not given.no_namespaces,
    )


if __name__ == "__main__":
    sys.exit(main())
