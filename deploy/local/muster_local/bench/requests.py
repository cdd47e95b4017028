"""How many requests a run costs, from the API server's own counters."""

import re

from muster_kube import Kube

_SAMPLE = re.compile(r"^apiserver_request_total\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)


async def served(kube: Kube) -> float:
    """Requests that the API server has answered, watches and health checks aside."""
    text = "\n".join([line.decode() async for line in kube.stream("/metrics")])
    return sum(
        float(value)
        for labels, value in _SAMPLE.findall(text)
        if 'verb="WATCH"' not in labels and 'verb="CONNECT"' not in labels
    )
