import pytest

LOG = "/api/v1/namespaces/vision/pods/{}/log"
PODS = "/api/v1/namespaces/vision/pods"
JOB = "/apis/muster.dev/v1alpha1/namespaces/vision/trainingjobs/digits"


def pod(attempt, replica, phase="Running", **metadata):
    name = f"digits-{attempt}-{replica}-0"
    labels = {"muster.dev/attempt": str(attempt), "muster.dev/replica": str(replica)}
    return {
        "metadata": {
            "name": name,
            "namespace": "vision",
            "uid": name,
            "resourceVersion": "1",
            "labels": labels,
        }
        | metadata,
        "spec": {"containers": [{"name": "train"}, {"name": "other"}]},
        "status": {"phase": phase},
    }


@pytest.fixture
def digits(kube):
    """A job of two replicas of two processes, in its second attempt."""
    spec = {"replicas": 2, "gpusPerReplica": 2}
    kube.on(f"GET {JOB}", {"metadata": {"name": "digits"}, "spec": spec})
    pods = [pod(2, 1), pod(1, 0, "Failed"), pod(2, 0)]
    kube.on(f"GET {PODS}", {"items": pods, "metadata": {"resourceVersion": "1"}})
    for each in pods:
        name = each["metadata"]["name"]
        kube.on(f"GET {LOG.format(name)}", f"{name} says\n\nbye".encode())
    return kube


def test_the_newest_attempt_is_printed_replica_by_replica(muster, digits):
    found = muster("logs", "digits")

    assert (0, "") == (found.code, found.err)
    assert [
        "[0] digits-2-0-0 says",
        "[0] ",
        "[0] bye",
        "[1] digits-2-1-0 says",
        "[1] ",
        "[1] bye",
    ] == found.out.splitlines()


def test_the_first_container_is_read_unless_another_is_the_default(muster, digits):
    muster("logs", "digits")

    assert "train" == digits.requests[-1].query["container"]

    named = {"kubectl.kubernetes.io/default-container": "other"}
    digits.on(f"GET {PODS}", {"items": [pod(2, 0, annotations=named)], "metadata": {}})
    muster("logs", "digits")

    assert "other" == digits.requests[-1].query["container"]


RANKS = {"0": "digits-2-0-0 says", "1": "digits-2-0-0 says", "2": "digits-2-1-0 says"}


@pytest.mark.parametrize("rank", RANKS)
def test_a_rank_is_read_from_its_replica_without_a_prefix(rank, muster, digits):
    assert RANKS[rank] == muster("logs", "digits", "--rank", rank).out.splitlines()[0]


def test_an_earlier_attempt_can_be_asked_for(muster, digits):
    assert "[0] digits-1-0-0 says" in muster("logs", "digits", "--attempt", "1").out


NOTHING = {
    "a rank that is not there": (("--rank", "4"), "--rank 4: digits has ranks 0 to 3"),
    "an attempt that is not there": (("--attempt", "7"), "digits has no pods of attempt 7"),
    "a replica that is not there": (
        ("--replica", "5", "--attempt", "2"),
        "digits has no pods of attempt 2 and replica 5",
    ),
}


@pytest.mark.parametrize("claim", NOTHING)
def test_what_is_not_there_is_said(claim, muster, digits):
    options, message = NOTHING[claim]

    found = muster("logs", "digits", *options)

    assert (2, "") == (found.code, found.out)
    assert message in found.err


def test_a_job_that_has_not_started_says_so(muster, digits):
    digits.on(f"GET {PODS}", {"items": [pod(1, 0, "Pending")], "metadata": {}})

    found = muster("logs", "digits")

    assert (2, True) == (found.code, "digits has not started yet" in found.err)


def test_an_unknown_job_is_named(muster, kube):
    found = muster("logs", "no")

    assert (2, True) == (found.code, "there is no TrainingJob no in namespace vision" in found.err)


def test_a_token_that_is_not_taken_is_said_with_the_way_out(muster, kube):
    refused = {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"}
    kube.on(f"GET {JOB}", refused, 401)

    found = muster("logs", "digits")

    assert (2, "") == (found.code, found.out)
    assert "does not take the token; check the user of the current context" in found.err


def test_following_prints_all_attempts_until_the_job_has_ended(muster, digits):
    ended = {
        "metadata": {"name": "digits", "uid": "u", "resourceVersion": "1"},
        "status": {"phase": "Succeeded"},
    }
    collection = JOB.rpartition("/")[0]
    digits.on(f"GET {collection}", {"items": [ended], "metadata": {"resourceVersion": "1"}})

    found = muster("logs", "digits", "-f")

    said = {line for line in found.out.splitlines() if line.endswith("says")}
    assert 0 == found.code
    assert {"[0] digits-1-0-0 says", "[0] digits-2-0-0 says", "[1] digits-2-1-0 says"} == said
    assert {"true"} == {r.query["follow"] for r in digits.requests if r.path.endswith("/log")}


def test_following_what_one_may_not_read_ends_at_once(muster, digits):
    said = {"kind": "Status", "message": "pods is forbidden"}
    digits.on(f"GET {PODS}", said, 403)

    found = muster("logs", "digits", "-f")

    assert (2, "muster: pods is forbidden\n") == (found.code, found.err)
