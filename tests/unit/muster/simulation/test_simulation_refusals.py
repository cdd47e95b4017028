"""What is wrong in a scenario is named by its path, with a way out."""

import pytest

from muster.errors import InvalidSpec
from muster.simulation.reading import scenario_of
from playing import scenario


def job(**fields):
    return {"jobs": [{"name": "a"} | fields]}


def event(**fields):
    return {"jobs": [{"name": "a"}], "events": [{"at": "1m"} | fields]}


def expect(**fields):
    return {"jobs": [{"name": "a"}], "expect": [fields]}


def node(**fields):
    return {"cluster": {"nodes": [fields]}}


BAD = {
    "no name": ({"name": None}, "name: is missing"),
    "an unknown part": ({"job": []}, "job: is not a field here; known: name, about, settings,"),
    "a part that is no list": ({"jobs": {"a": 1}}, "jobs: must be a list, is a mapping"),
    "a job that is no mapping": ({"jobs": ["a"]}, "jobs[0]: must be a mapping, is 'a'"),
    "a name that is a number": (job(name=5), "jobs[0].name: must be a string, is 5; put it in qu"),
    "an unknown setting": (
        {"settings": {"notice": "1s"}},
        "settings.notice: is not a field here;",
    ),
    "a setting of the wrong type": (
        {"settings": {"reservation": "no"}},
        "settings.reservation: must be true or false, is 'no'",
    ),
    "a bad duration": (
        {"settings": {"usageHalfLife": "1 week"}},
        "settings.usageHalfLife: must be a duration such as 90s, 5m or 1h30m, is '1 week'",
    ),
    "a duration without a unit": (job(duration=90), "jobs[0].duration: must be a duration such"),
    "node as a level": (
        {"cluster": {"levels": ["node"]}},
        "cluster.levels[0]: must not be node, which is always the last level; remove it",
    ),
    "a level twice": (
        {"cluster": {"levels": ["rack", "rack"]}},
        "cluster.levels[1]: rack is there twice; remove one",
    ),
    "a node without a name": (node(gpus=1), "cluster.nodes[0]: must have either a name, or a"),
    "a node with a name and a count": (
        node(name="n", count=2, gpus=1),
        "cluster.nodes[0].count: goes with a prefix",
    ),
    "a prefix without a count": (node(prefix="n", gpus=1), "cluster.nodes[0].count: is missing"),
    "a node without GPUs": (node(name="n"), "cluster.nodes[0].gpus: is missing"),
    "negative GPUs": (node(name="n", gpus=-1), "cluster.nodes[0].gpus: must be at least 0, is -1"),
    "more bad GPUs than there are": (
        node(name="n", gpus=1, badGpus=2),
        "cluster.nodes[0].badGpus: must be at most gpus, which is 1; is 2",
    ),
    "an unknown capacity type": (
        node(name="n", gpus=1, capacityType="cheap"),
        "cluster.nodes[0].capacityType: must be one of spot, on-demand, is 'cheap'",
    ),
    "a node twice": (
        {
            "cluster": {
                "nodes": [{"name": "n1", "gpus": 1}, {"count": 1, "prefix": "n", "gpus": 1}]
            }
        },
        "cluster.nodes[1].prefix: there is a node n1 already; rename one",
    ),
    "too many nodes": (
        node(count=100_001, prefix="n", gpus=1),
        "cluster.nodes[0].count: must not make more than 100000 nodes in all",
    ),
    "a queue twice": (
        {"queues": [{"name": "q"}, {"name": "q"}]},
        "queues[1].name: there is a queue q already; rename one",
    ),
    "an unknown parent": (
        {"queues": [{"name": "q", "parent": "p"}]},
        "queues[0].parent: there is no queue 'p'; known: q",
    ),
    "a ring of queues": (
        {"queues": [{"name": "p", "parent": "q"}, {"name": "q", "parent": "p"}]},
        "queues[0].parent: makes a ring of p, q; leave out one of the parents",
    ),
    "a negative weight": (
        {"queues": [{"name": "q", "weight": -1}]},
        "queues[0].weight: must be a number of at least 0, is -1",
    ),
    "a weight that is no number": (
        {"queues": [{"name": "q", "weight": "high"}]},
        "queues[0].weight: must be a number, is 'high'",
    ),
    "an unknown order": (
        {"queues": [{"name": "q", "order": "lifo"}]},
        "queues[0].order: must be one of fifo, attained-service, shortest-remaining, is 'lifo'",
    ),
    "an unknown tie break": (
        {"queues": [{"name": "q", "tieBreak": ["price"]}]},
        "queues[0].tieBreak: there is no tie break 'price'; known: health, spot",
    ),
    "a limit that is no number": (
        {"queues": [{"name": "q", "limit": {"H100": "all"}}]},
        "queues[0].limit.H100: must be a whole number, is 'all'",
    ),
    "a job twice": (
        {"jobs": [{"name": "a"}, {"name": "a"}]},
        "jobs[1].name: there is a job a alr",
    ),
    "an unknown queue": (job(queue="q"), "jobs[0].queue: there is no queue 'q'; known: default"),
    "replicas in words": (
        job(replicas="two"),
        "jobs[0].replicas: must be a whole number, is 'two'",
    ),
    "no replicas": (job(replicas=0), "jobs[0].replicas: must be at least 1, is 0"),
    "true replicas": (job(replicas=True), "jobs[0].replicas: must be a whole number, is True"),
    "a minimum above the replicas": (
        job(replicas=2, minReplicas=3),
        "jobs[0].minReplicas: must be at most replicas, which is 2; is 3",
    ),
    "an unknown field of a job": (job(gpus=1), "jobs[0].gpus: is not a field here; known: name,"),
    "a limit of no time": (job(maxRunTime="0s"), "jobs[0].maxRunTime: must be longer than 0s"),
    "an unknown level": (
        job(topology={"required": "rack"}),
        "jobs[0].topology.required: there is no level 'rack'; known: node",
    ),
    "parts without a size": (
        job(topology={"perPart": {"required": "node"}}),
        "jobs[0].topology.perPart.size: is missing",
    ),
    "parts without a level": (
        job(topology={"perPart": {"size": 2}}),
        "jobs[0].topology.perPart.required: is missing",
    ),
    "duration and durations": (
        job(duration="1m", durations=["1m"]),
        "jobs[0].durations: must not stand beside duration; leave one of them out",
    ),
    "too few durations": (
        job(replicas=2, durations=["1m"]),
        "jobs[0].durations: must have one for each of 2 replicas, has 1",
    ),
    "a bad one of the durations": (
        job(replicas=2, durations=["1m", "x"]),
        "jobs[0].durations[1]: must be a duration",
    ),
    "too few nodes": (
        job(replicas=2, nodes=["n1"]),
        "jobs[0].nodes: must name a node for each of 2 replicas, names 1",
    ),
    "too many nodes of an elastic job": (
        job(replicas=2, minReplicas=1, nodes=["n1"] * 3),
        "jobs[0].nodes: must name a node for each of 1 to 2 replicas, names 3",
    ),
    "an unknown node": (job(nodes=["n2"]), "jobs[0].nodes[0]: there is no node 'n2'; known: n1"),
    "a node that is too small": (
        job(nodes=["n1"], gpusPerReplica=9),
        "jobs[0].nodes[0]: n1 has 8 GPUs, and 1 replicas of 9 need more; choose other nodes",
    ),
    "a node where none is defined": (
        {"cluster": {}, "jobs": [{"name": "a", "nodes": ["n1"]}]},
        "jobs[0].nodes[0]: there is no node 'n1'; no node is defined",
    ),
    "a node with too few cpus": (
        {
            "cluster": {"nodes": [{"name": "n1", "gpus": 8, "cpus": 3}]},
            "jobs": [{"name": "a", "nodes": ["n1"] * 2, "replicas": 2, "cpusPerReplica": 2}],
        },
        "jobs[0].nodes[0]: n1 has too few cpus for 2 replicas",
    ),
    "a node that takes too few pods": (
        {
            "cluster": {"nodes": [{"name": "n1", "gpus": 8, "pods": 1}]},
            "jobs": [{"name": "a", "nodes": ["n1"] * 2, "replicas": 2}],
        },
        "jobs[0].nodes[0]: n1 takes 1 pods, and 2 replicas are more",
    ),
    "after one that is after an unknown job": (
        {"jobs": [{"name": "a", "after": "b"}, {"name": "b", "after": "c"}]},
        "jobs[1].after: there is no job 'c'; known: a, b",
    ),
    "a node of another model": (
        job(nodes=["n1"], nodeSelector={"gpuModel": "H100"}),
        "jobs[0].nodes[0]: n1 has no H100",
    ),
    "a node of another capacity type": (
        job(nodes=["n1"], nodeSelector={"capacityType": "spot"}),
        "jobs[0].nodes[0]: n1 is not spot",
    ),
    "a node without the label": (
        job(nodes=["n1"], nodeSelector={"zone": "z"}),
        "jobs[0].nodes[0]: n1 does not match the nodeSelector",
    ),
    "a suspended job that runs": (
        job(nodes=["n1"], suspend=True),
        "jobs[0].suspend: must be left out for a job that runs already",
    ),
    "after an unknown job": (job(after="b"), "jobs[0].after: there is no job 'b'; known: a"),
    "after itself": (job(after="a"), "jobs[0].after: makes a ring, a after a; leave one out"),
    "a ring of jobs": (
        {"jobs": [{"name": "a", "after": "b"}, {"name": "b", "after": "a"}]},
        "jobs[0].after: makes a ring, a after b after a; leave one out",
    ),
    "an event without a time": (event(at=None, node="n1", becomes="up"), "events[0].at: is missi"),
    "an event of nothing": (event(), "events[0]: must be about one of node, queue and job"),
    "an event of two things": (
        event(node="n1", job="a", becomes="up"),
        "events[0]: must be about one of node, queue and job",
    ),
    "an unknown deed": (
        event(node="n1", becomes="broken"),
        "events[0].becomes: must be one of down, drained, up, is 'broken'",
    ),
    "a node without a deed": (event(node="n1"), "events[0].becomes: is missing"),
    "a node that is set": (
        event(node="n1", becomes="up", set={}),
        "events[0].set: is not for a node; leave it out",
    ),
    "an event of an unknown node": (
        event(node="n7", becomes="up"),
        "events[0].node: there is no n",
    ),
    "an event of an unknown queue": (
        event(queue="q", set={}),
        "events[0].queue: there is no queu",
    ),
    "a queue that is renamed": (
        event(queue="default", set={"name": "q"}),
        "events[0].set.name: is not a field here",
    ),
    "an event of an unknown job": (event(job="b", set={}), "events[0].job: there is no job 'b'"),
    "a job without a wish": (event(job="a", set={}), "events[0].set.suspend: is missing"),
    "nothing expected": (expect(job="a"), "expect[0]: says nothing to hold; known here: state,"),
    "an unknown expectation": (expect(job="a", gpus=1), "expect[0].gpus: is not a field here"),
    "of two subjects": (
        expect(job="a", queue="default", share=1),
        "expect[0]: must be about one of job and queue, not both",
    ),
    "of the wrong subject": (
        expect(queue="default", state="Running"),
        "expect[0].state: cannot be asked of a queue; known: share",
    ),
    "of nobody": (
        expect(replicas=1),
        "expect[0].replicas: cannot be asked here; known: evictions",
    ),
    "of an unknown job": (expect(job="b", state="Running"), "expect[0].job: there is no job 'b'"),
    "of an unknown one": (
        expect(oneOf=["a", "b"], evictions=1),
        "expect[0].oneOf[1]: there is no job 'b'",
    ),
    "of none of them": (expect(oneOf=[], evictions=1), "expect[0].oneOf: must name jobs"),
    "an unknown state": (
        expect(job="a", state="Done"),
        "expect[0].state: must be one of Pending, Running, Succeeded, Failed, is 'Done'",
    ),
    "an unknown reason": (
        expect(job="a", reason="Lazy"),
        "expect[0].reason: must be one of Suspended, UnknownQueue,",
    ),
    "a bad start": (
        expect(job="a", startedAt="soon"),
        "expect[0].startedAt: must be a time such as 90s, 5m or 1h30m, or never, is 'soon'",
    ),
    "a bad prediction": (
        expect(job="a", predictedStart="never"),
        "expect[0].predictedStart: must be a time such as 90s, 5m or 1h30m, or unknown, is 'nev",
    ),
    "a start at a time": (
        expect(job="a", startedAt="1m", at="2m"),
        "expect[0].at: is not for startedAt, which is a time itself; leave it out",
    ),
    "an unknown level of domains": (
        expect(job="a", nodesWithin={"level": "rack", "domains": 1}),
        "expect[0].nodesWithin.level: there is no level 'rack'; known: node",
    ),
    "domains without a number": (
        expect(job="a", nodesWithin={"level": "node"}),
        "expect[0].nodesWithin.domains: is missing",
    ),
    "an unknown rank": (
        expect(job="a", ranks=["n1", "n2"]),
        "expect[0].ranks[1]: there is no node 'n2'",
    ),
    "replicas on an unknown node": (
        expect(job="a", nodes={"n2": 1}),
        "expect[0].nodes.n2: there is no node 'n2'",
    ),
    "a tolerance of a count": (
        expect(freeGpus=1, tolerance=1),
        "expect[0].tolerance: is for share only; leave it out",
    ),
    "a look after the end": (
        {"until": "1h", "expect": [{"freeGpus": 8, "at": "2h"}]},
        "expect[0].at: must not be later than until, which is 1h; is 2h",
    ),
}


@pytest.mark.parametrize("claim", BAD)
def test_it_is_refused(claim):
    parts, message = BAD[claim]

    with pytest.raises(InvalidSpec) as refused:
        scenario_of(scenario(**parts))

    assert message == str(refused.value)[: len(message)]


def test_what_is_no_mapping_is_refused():
    with pytest.raises(InvalidSpec, match="must be a mapping, is a list"):
        scenario_of([])
