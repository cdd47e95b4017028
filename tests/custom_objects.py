"""Objects of our kinds in few words, for the tests of our CRDs."""

from typing import Any

from muster_kube import JOBS, Resource


def an_object(resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec,
    }


def a_job(name: str = "job", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "train", "image": "python"}]}}
    return an_object(JOBS, name, {"template": template, **spec})


def a_template(**pod_spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "train"}], **pod_spec}}
