"""Writes `digits.yaml` from `digits.py`: a job needs its script in the cluster, people need it in
a file that they can run and read.

    python deploy/examples/generate.py           writes it
    python deploy/examples/generate.py --check   exits 1 if it is out of step
"""

import sys
from pathlib import Path
from string import Template
from textwrap import indent

FOLDER = Path(__file__).parent

JOB = Template("""\
# Data-parallel PyTorch on the handwritten digits that scikit-learn ships: 2 replicas of 2
# processes each, on CPUs with gloo and on GPUs with NCCL by the same script.
#
#   kubectl apply -f deploy/examples/digits.yaml
#   muster logs digits -f
#
# Written by generate.py from digits.py; change that and run it again.
apiVersion: v1
kind: ConfigMap
metadata:
  name: digits
data:
  digits.py: |
$script
---
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata:
  name: digits
spec:
  replicas: 2
  gpusPerReplica: 4
  processesPerReplica: 2
  topology:
    preferred: rack
  # The job's uid is added to it, so that a job of the same name starts afresh.
  checkpoint:
    uri: file:///checkpoints
  template:
    spec:
      containers:
        - name: train
          # Any image with `pip install 'muster-train[examples]'`. On a local cluster no image is
          # run: the command runs in the local Python environment.
          image: muster-train
          command: [torchrun, /etc/digits/digits.py]
          env:
            # Each process computes on one core; without this each would take all of them.
            - {name: OMP_NUM_THREADS, value: "1"}
            # On a local cluster all replicas are on this machine. Elsewhere, leave it out.
            - {name: GLOO_SOCKET_IFNAME, value: lo}
            - {name: PYTHONUNBUFFERED, value: "1"}
          volumeMounts:
            - {name: script, mountPath: /etc/digits}
            - {name: checkpoints, mountPath: /checkpoints}
      volumes:
        - name: script
          configMap: {name: digits}
        # One machine's folder is shared by all its process nodes. On a real cluster use a volume
        # that all nodes share, or an object store as spec.checkpoint.uri.
        - name: checkpoints
          hostPath: {path: /tmp/muster-digits, type: DirectoryOrCreate}
""")


def rendered() -> str:
    """The manifest with the script in it."""
    script = (FOLDER / "digits.py").read_text(encoding="utf-8")
    return JOB.substitute(script=indent(script, "    ").rstrip("\n"))


def main(arguments: list[str]) -> int:
    """Write the manifest, or with `--check` say whether it is in step."""
    manifest = FOLDER / "digits.yaml"
    if arguments != ["--check"]:
        manifest.write_text(rendered(), encoding="utf-8")
        return 0
    is_in_step = manifest.read_text(encoding="utf-8") == rendered()
    if not is_in_step:
        sys.stderr.write(f"{manifest} is out of step: run python {__file__}\n")
    return 0 if is_in_step else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
