"""A job and a small cluster as files, for the tests of the command."""

from muster.scheduling.archive import Inputs
from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue, Run
from small_clusters import BLOCKS, gang, holding, node, nodes

MANIFEST = """\
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: digits}
spec:
  replicas: 3
  gpusPerReplica: 1
  template: {spec: {containers: [{name: train, image: team/digits}]}}
"""
HOUR = Run(started=0.0)
LONG = holding(gang("vision/long", 8, run=HOUR, max_run_time=3600.0), " ".join(["n1"] * 8))
CLUSTER = Cluster.of(
    levels=BLOCKS,
    nodes=[
        *nodes("n1 n2", rack="r1", block="b1", gpu_model="H100"),
        node("n3", 4, rack="r2", block="b1", bad_gpus=1, is_cordoned=True),
    ],
    queues=[
        Queue("org", guaranteed=8),
        Queue("team", parent="org", limit=12, weight=2.0),
        Queue("old", is_paused=True, guaranteed_by_model={"H100": 4}, weight=0.0),
    ],
    gangs=[
        LONG,
        holding(gang("audio/x", 3, run=HOUR, queue="team"), "n2 n2 n2"),
        gang("vision/waits", 1, 6, queue="team"),
    ],
)
INPUTS = Inputs(CLUSTER.objects(), Policy(), 60.0)
