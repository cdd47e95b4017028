"""Where each kind of object lives in the API."""

from dataclasses import dataclass
from urllib.parse import quote

from muster import wire


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object, by the path under which the API server serves it."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """The URL path of the collection, of one object, or of its subresource.

        Without *namespace* a namespaced collection is that of all namespaces.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


JOBS = Resource(wire.GROUP, wire.VERSION, "trainingjobs", "TrainingJob")
QUEUES = Resource(wire.GROUP, wire.VERSION, "queues", "Queue", namespaced=False)
TOPOLOGIES = Resource(wire.GROUP, wire.VERSION, "topologies", "Topology", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
EVENTS = Resource("", "v1", "events", "Event")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
