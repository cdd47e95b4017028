"""What all pods of this process share."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster_kube import Kube
from muster_local.nodes.events import Events
from muster_local.nodes.hosts import HostsFiles
from muster_local.nodes.settings import Settings
from muster_local.nodes.storage import Storage


@dataclass(frozen=True, slots=True)
class Context:
    """Made once, by `host`."""

    kube: Kube
    settings: Settings
    storage: Storage
    events: Events
    hosts: HostsFiles
    platform: Mapping[str, str]
    """Environment that every container gets."""
    programs: str
    """The directory that leads PATH: that of our Python."""
    refused_because: str = ""
    """Why mount namespaces are refused; empty where they work."""
