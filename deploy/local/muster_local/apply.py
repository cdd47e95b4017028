"""Puts manifests into the API server, as `kubectl apply --server-side -f` would."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from muster.errors import InvalidSpec, Unavailable
from muster_kube import ApiNotFound, Kube, Resource

Manifest = dict[str, Any]

_MANAGER: Final = "muster-local"
_ESTABLISHED_SECONDS: Final = 20.0
_POLL_SECONDS: Final = 0.05
# What others need comes first; kinds that are not here come last.
_ORDER: Final = (
    "CustomResourceDefinition",
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "Role",
    "ClusterRoleBinding",
    "RoleBinding",
    "ConfigMap",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBinding",
)


def manifests_in(chart: Path) -> list[Manifest]:
    """What the chart's `crds/` and `files/` hold, in the order in which it can be applied."""
    files = [*sorted((chart / "crds").glob("*.yaml")), *sorted((chart / "files").glob("*.yaml"))]
    return ordered(manifest for file in files for manifest in _read(file))


def ordered(manifests: Iterable[Manifest]) -> list[Manifest]:
    """The manifests with what others need first, otherwise in their own order."""
    rank = {kind: place for place, kind in enumerate(_ORDER)}
    return sorted(manifests, key=lambda each: rank.get(each["kind"], len(_ORDER)))


async def apply(kube: Kube, manifests: Sequence[Manifest]) -> None:
    """Apply *manifests*, which are `ordered`, and wait until new kinds are served.

    Raises an `ApiError` naming what was refused.
    """
    kinds = _Kinds(kube)
    definitions = [each for each in manifests if each["kind"] == _ORDER[0]]
    await asyncio.gather(*(_apply(kube, kinds, each) for each in definitions))
    await asyncio.gather(*(_established(kube, kinds, each) for each in definitions))
    for each in manifests:
        if each["kind"] != _ORDER[0]:
            await _apply(kube, kinds, each)


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

    await _until(is_served, f"{definition['metadata']['name']} to be served")


async def _until(is_so: Callable[[], Any], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + _ESTABLISHED_SECONDS
    while not await is_so():
        if asyncio.get_running_loop().time() > deadline:
            raise Unavailable(f"waited {_ESTABLISHED_SECONDS:g} s in vain for {what}")
        await asyncio.sleep(_POLL_SECONDS)


def _read(file: Path) -> list[Manifest]:
    try:
        documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise InvalidSpec(str(file), f"not YAML: {error}") from error
    return [each for each in documents if each]
