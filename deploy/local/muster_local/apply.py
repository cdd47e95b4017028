"""Puts manifests into the API server, as `kubectl apply --server-side -f` would."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from muster.errors import InvalidSpec, Unavailable
from muster_kube import ApiNotFound, Kube, Resource

Manifest = dict[str, Any]

_MANAGER: Final = "muster-local"
_PATIENCE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
# What others need comes first; what is in one stage is applied side by side. Kinds that are not
# here come last. Policies need nothing, and take the API server the longest to act on.
_STAGES: Final = (
    (
        "CustomResourceDefinition",
        "Namespace",
        "MutatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicyBinding",
    ),
    ("ServiceAccount", "ClusterRole", "Role"),
)
_RANK: Final = {kind: rank for rank, kinds in enumerate(_STAGES) for kind in kinds}


def manifests_in(chart: Path) -> list[Manifest]:
    """What the chart's `crds/` and `files/` hold."""
    files = [*sorted((chart / "crds").glob("*.yaml")), *sorted((chart / "files").glob("*.yaml"))]
    return [manifest for file in files for manifest in read(file)]


def read(file: Path) -> list[Manifest]:
    """The manifests in a file. Raises `InvalidSpec`."""
    try:
        documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise InvalidSpec(str(file), f"not YAML: {error}") from error
    return [each for each in documents if each]


def staged(manifests: Iterable[Manifest]) -> list[list[Manifest]]:
    """The manifests in stages: each needs at most what the stages before it hold."""
    stages: list[list[Manifest]] = [[] for _ in range(len(_STAGES) + 1)]
    for each in manifests:
        stages[_RANK.get(each["kind"], len(_STAGES))].append(each)
    return stages


async def apply(kube: Kube, manifests: Iterable[Manifest]) -> None:
    """Apply *manifests* in order of need, and wait until new kinds are served.

    Raises an `ApiError` that says what was refused.
    """
    kinds = _Kinds(kube)
    for stage in staged(manifests):
        await asyncio.gather(*(_apply(kube, kinds, each) for each in stage))
        definitions = [each for each in stage if each["kind"] == "CustomResourceDefinition"]
        await asyncio.gather(*(_established(kube, kinds, each) for each in definitions))


class _Kinds:
    """Where the API server serves a kind, as it says itself."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._known: dict[tuple[str, str], Resource] = {}

    async def resource(self, api_version: str, kind: str) -> Resource:
        """The resource of *kind*. Raises `InvalidSpec` where the server knows no such kind."""
        if (api_version, kind) not in self._known:
            await self._discover(api_version)
        try:
            return self._known[api_version, kind]
        except KeyError:
            raise InvalidSpec("kind", f"the API server serves no {api_version} {kind}") from None

    async def _discover(self, api_version: str) -> None:
        group, _, version = api_version.rpartition("/")
        try:
            answer = await self._kube.get(
                f"/apis/{group}/{version}" if group else f"/api/{version}"
            )
        except ApiNotFound:
            return
        for each in answer["resources"]:
            if "/" not in each["name"]:
                self._known[api_version, each["kind"]] = Resource(
                    group, version, each["name"], each["kind"], namespaced=each["namespaced"]
                )


async def _apply(kube: Kube, kinds: _Kinds, manifest: Manifest) -> None:
    resource = await kinds.resource(manifest["apiVersion"], manifest["kind"])
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace", "default") if resource.namespaced else None
    await kube.patch(
        resource.path(namespace, metadata["name"]),
        manifest,
        kind="apply",
        fieldManager=_MANAGER,
        force="true",
    )


async def _established(kube: Kube, kinds: _Kinds, definition: Manifest) -> None:
    """Wait until the API server serves what *definition* defines, in discovery and by its path."""
    spec = definition["spec"]
    versions = [each["name"] for each in spec["versions"] if each["served"]]

    async def is_served() -> bool:
        for version in versions:
            try:
                resource = await kinds.resource(
                    f"{spec['group']}/{version}", spec["names"]["kind"]
                )
                await kube.get(resource.path(), limit="1")
            except (InvalidSpec, ApiNotFound):
                return False
        return True

    await until(is_served, f"{definition['metadata']['name']} to be served")


async def until(
    is_so: Callable[[], Awaitable[bool]],
    what: str,
    *,
    seconds: float = _PATIENCE_SECONDS,
    every_seconds: float = _POLL_SECONDS,
) -> None:
    """Poll *is_so*. Raises `Unavailable` when it does not come true within *seconds*."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not await is_so():
        if asyncio.get_running_loop().time() > deadline:
            raise Unavailable(f"waited {seconds:g} s in vain for {what}")
        await asyncio.sleep(every_seconds)
