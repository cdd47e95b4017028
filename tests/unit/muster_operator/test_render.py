"""What a replica's pod looks like."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from muster import wire
from muster.job_status import Growth, Placement
from muster.parse import job_of
from muster_operator.render import GangBody, service

PLACEMENT = Placement(3, 0.0, 20_007, ("n1", "n1", "n2"), "why")
UID = "0f9c"


def rendered(
    replica: int = 0, labels: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """The pod of one replica of a job with *spec*."""
    job = manifest(**spec)
    body = GangBody(job_of(job), PLACEMENT, 5, labels or {}, "http://api:8080")
    pod: dict[str, Any] = orjson.loads(body.pod(replica))
    return pod


def manifest(**spec: Any) -> dict[str, Any]:
    pod_spec = {"containers": [{"name": "main", "image": "i"}], **spec.pop("pod_spec", {})}
    template = {"spec": pod_spec, **spec.pop("template", {})}
    return {
        "metadata": {"name": "train", "namespace": "team", "uid": UID},
        "spec": {"replicas": 3, "gpusPerReplica": 2, "template": template, **spec},
    }


def environment(pod: dict[str, Any], kind: str = "containers") -> dict[str, str]:
    return {v["name"]: v.get("value", "") for v in pod["spec"][kind][0]["env"]}


def test_replicas_differ_in_what_is_theirs_and_in_nothing_else() -> None:
    texts = [GangBody(job_of(manifest()), PLACEMENT, 5, {}, "").pod(r).decode() for r in range(3)]
    first, _, third = (orjson.loads(text) for text in texts)

    assert ["train-3-0-0", "train-3-2-0"] == [first["metadata"]["name"], third["metadata"]["name"]]
    assert ["n1", "n2"] == [first["spec"]["nodeName"], third["spec"]["nodeName"]]
    assert "train-2" == third["spec"]["hostname"]
    assert "2" == third["metadata"]["labels"][wire.LABEL_REPLICA]
    assert ("2", "2") == (
        environment(third)[wire.ENV_REPLICA],
        environment(third)[wire.ENV_PET_NODE_RANK],
    )
    assert texts[0] == texts[1].replace("train-3-1-0", "train-3-0-0").replace(
        'train-1"', 'train-0"'
    ).replace('"1"', '"0"')


def test_an_elastic_gang_finds_out_by_itself_who_takes_part() -> None:
    first, second = (environment(rendered(replica, minReplicas=2)) for replica in range(2))

    assert {
        "PET_NNODES": "2:3",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "train-0.train.team.svc:20007",
        "PET_RDZV_ID": "0f9c-3",
        "PET_RDZV_CONF": "is_host=1,last_call_timeout=10",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    } == {key: value for key, value in first.items() if "RDZV" in key or "NNODES" in key}
    assert "is_host=0,last_call_timeout=10" == second["PET_RDZV_CONF"]
    assert not [key for key in environment(rendered()) if "RDZV" in key]


def test_a_rank_that_was_given_again_has_a_pod_of_another_name() -> None:
    grown = replace(PLACEMENT, round=5, grown=(Growth(1, 0.0, 7), Growth(2, 0.0, 9)))
    body = GangBody(job_of(manifest()), grown, 5, {}, "")
    names = [orjson.loads(body.pod(replica))["metadata"]["name"] for replica in range(3)]

    assert ["train-3-0-0", "train-3-1-2", "train-3-2-4"] == names


def test_it_belongs_to_its_job() -> None:
    (owner,) = rendered()["metadata"]["ownerReferences"]

    assert {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "TrainingJob",
        "name": "train",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    } == owner


def test_the_environment_is_that_of_torchrun() -> None:
    pod = rendered(1, processesPerReplica=4, checkpoint={"uri": "s3://bucket/runs/"})

    assert {
        "MUSTER_NAMESPACE": "team",
        "MUSTER_JOB": "train",
        "MUSTER_JOB_UID": UID,
        "MUSTER_ATTEMPT": "3",
        "MUSTER_ROUND": "5",
        "MUSTER_REPLICA": "1",
        "MUSTER_API_URL": "http://api:8080",
        "MUSTER_TOKEN_FILE": "/var/run/secrets/muster.dev/token",
        "MUSTER_CHECKPOINT_URI": f"s3://bucket/runs/{UID}",
        "MASTER_ADDR": "train-0.train.team.svc",
        "MASTER_PORT": "20007",
        "PET_MASTER_ADDR": "train-0.train.team.svc",
        "PET_MASTER_PORT": "20007",
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "4",
        "PET_NODE_RANK": "1",
    } == environment(pod)


def test_there_is_nothing_about_what_is_not_there() -> None:
    job = job_of(manifest())
    pod = orjson.loads(GangBody(job, PLACEMENT, 5, {}, "").pod(0))

    assert not {wire.ENV_API_URL, wire.ENV_CHECKPOINT_URI} & set(environment(pod))


CONTAINER = {"name": "main", "image": "i"}
CLAIMS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "gpus go to the first container": (
        {"pod_spec": {"containers": [CONTAINER, {"name": "log"}]}},
        lambda pod: [
            c.get("resources", {}).get("limits", {}).get("nvidia.com/gpu")
            for c in pod["spec"]["containers"]
        ],
        ["2", None],
    ),
    "beside what it asks for itself": (
        {"pod_spec": {"containers": [{**CONTAINER, "resources": {"limits": {"memory": "1Gi"}}}]}},
        lambda pod: pod["spec"]["containers"][0]["resources"]["limits"],
        {"memory": "1Gi", "nvidia.com/gpu": "2"},
    ),
    "without gpus nothing is added": (
        {"gpusPerReplica": 0},
        lambda pod: "resources" in pod["spec"]["containers"][0],
        False,
    ),
    "nothing of the template is lost": (
        {"pod_spec": {"tolerations": [{"operator": "Exists"}], "priorityClassName": "high"}},
        lambda pod: (pod["spec"]["tolerations"], pod["spec"]["priorityClassName"]),
        ([{"operator": "Exists"}], "high"),
    ),
    "it is never restarted in place": (
        {"pod_spec": {"restartPolicy": "Always"}},
        lambda pod: (pod["spec"]["restartPolicy"], pod["spec"]["enableServiceLinks"]),
        ("Never", False),
    ),
    "labels and annotations of the template stay": (
        {"template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}},
        lambda pod: (pod["metadata"]["labels"]["a"], pod["metadata"]["annotations"]),
        ("b", {"c": "d"}),
    ),
    "ours win": (
        {"template": {"metadata": {"labels": {wire.LABEL_JOB: "other"}}}},
        lambda pod: pod["metadata"]["labels"][wire.LABEL_JOB],
        "train",
    ),
    "the queue is a label": (
        {"queue": "research"},
        lambda pod: pod["metadata"]["labels"][wire.LABEL_QUEUE],
        "research",
    ),
    "a variable of ours cannot be overridden": (
        {
            "pod_spec": {
                "containers": [{**CONTAINER, "env": [{"name": "PET_NNODES"}, {"name": "A"}]}]
            }
        },
        lambda pod: (len(pod["spec"]["containers"][0]["env"]), environment(pod)["PET_NNODES"]),
        (16, "3"),
    ),
    "init containers get it too": (
        {"pod_spec": {"initContainers": [{"name": "init"}]}},
        lambda pod: environment(pod, "initContainers")["MUSTER_REPLICA"],
        "0",
    ),
    "the last words of a script that raises are kept": (
        {},
        lambda pod: pod["spec"]["containers"][0]["terminationMessagePolicy"],
        "FallbackToLogsOnError",
    ),
    "unless the template has its own idea": (
        {"pod_spec": {"containers": [{**CONTAINER, "terminationMessagePolicy": "File"}]}},
        lambda pod: pod["spec"]["containers"][0]["terminationMessagePolicy"],
        "File",
    ),
    "a script is told where its last words go": (
        {"pod_spec": {"containers": [{**CONTAINER, "terminationMessagePath": "/tmp/words"}]}},
        lambda pod: environment(pod)[wire.ENV_TERMINATION_LOG],
        "/tmp/words",
    ),
    "the token is mounted where it is looked for": (
        {},
        lambda pod: (
            pod["spec"]["containers"][0]["volumeMounts"][-1]["mountPath"],
            pod["spec"]["volumes"][-1]["projected"]["sources"][0]["serviceAccountToken"],
        ),
        (
            "/var/run/secrets/muster.dev",
            {"audience": "muster", "expirationSeconds": 3600, "path": "token"},
        ),
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_of_a_pod(claim: str) -> None:
    spec, look, want = CLAIMS[claim]

    assert want == look(rendered(**spec))


def test_team_and_experiment_are_copied_from_the_job() -> None:
    labels = {wire.LABEL_TEAM: "vision", wire.LABEL_EXPERIMENT: "e1", "private": "x"}
    got = rendered(labels=labels)["metadata"]["labels"]

    assert ("vision", "e1") == (got[wire.LABEL_TEAM], got[wire.LABEL_EXPERIMENT])
    assert "private" not in got


def test_a_template_for_kube_scheduler_is_pinned_and_not_bound() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    terms = [{"matchExpressions": [zone]}, {"matchExpressions": []}]
    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "h"}]
        },
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        },
    }
    spec = rendered(2, pod_spec={"affinity": affinity})["spec"]
    pinned = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}

    assert "nodeName" not in spec
    assert affinity["podAntiAffinity"] == spec["affinity"]["podAntiAffinity"]
    assert [{**term, **pinned} for term in terms] == spec["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]


def test_without_terms_of_its_own_the_node_is_the_only_one() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    spec = rendered(0, pod_spec={"volumes": [claim]})["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]

    assert ["n1"] == term["matchFields"][0]["values"]


def test_the_service_is_headless_and_owned() -> None:
    got = service(job_of(manifest()))

    assert {
        "clusterIP": "None",
        "selector": {wire.LABEL_JOB: "train"},
        "publishNotReadyAddresses": True,
    } == got["spec"]
    assert UID == got["metadata"]["ownerReferences"][0]["uid"]
    assert ("train", "team") == (got["metadata"]["name"], got["metadata"]["namespace"])
