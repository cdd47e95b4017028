"""Service account tokens for projected volumes, bound to their pod."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from muster_kube import Kube
from muster_local.nodes.projection import TokenOrder

Raw = Mapping[str, Any]

_RENEW_AT: Final = 0.8
"""Of its lifetime: when the kubelet renews a token."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and when to get the next, in seconds since the epoch."""

    text: str
    renew_at: float


async def request_token(kube: Kube, pod: Raw, order: TokenOrder, *, now: float) -> Token:
    """A token of the pod's service account that ends with the pod. Raises an `ApiError`."""
    metadata, account = pod["metadata"], pod["spec"].get("serviceAccountName") or "default"
    bound_to = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    answer = await kube.create(
        f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [order.audience] if order.audience else [],
                "expirationSeconds": order.seconds,
                "boundObjectRef": bound_to,
            },
        },
    )
    status = answer["status"]
    expires = datetime.fromisoformat(status["expirationTimestamp"]).timestamp()
    # The API server may extend a lifetime for old clients; renewal goes by what was asked for.
    lifetime = min(expires - now, order.seconds)
    return Token(status["token"], now + lifetime * _RENEW_AT)
