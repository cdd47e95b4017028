"""`muster bench schedule`: how long the scheduling core takes to decide, in this process alone.

No API server, no operator and no pods: the cluster in memory, `plan_cycle`, and the carrying out
in memory, in one thread. What counts as **a decision**, and so as one sample, differs by shape:

- `gangs-5000-nodes`: one gang from its submission until it is placed and accounted for. Each is
  submitted when the one before it stands, so that each meets the cluster as those before left it.
- `preferred-512`, `verdict-4000-jobs`, `reclaim-2000-gpus`: one pass in which that one gang is
  placed, refused with a reason, or given its victims. Each sample has a cluster of its own.
- `full-100k-gpus`: one pass that gives every pending job its reason.
- `next-pass-100k-gpus`: a job's end, and the pass that it causes, carried out.
- `kueue-baseline`: a start or an eviction; all time of the run is divided among them.

**Warm-up.** A cluster is brought to where a running scheduler has it: nodes, queues and running
jobs taken in, and a snapshot taken, which builds the tree of domains and the arrays. One pass over
another cluster of the same kind, a tenth of the size, has run before, so that no import and no
first call is measured. Nothing has been asked yet about the gangs that are measured: the answers
that a cluster keeps are empty. In `gangs-5000-nodes` and `next-pass-100k-gpus` each decision finds
what those before it left, as in life. The garbage collector runs as it always does; what the
building left is collected before the clock starts.

**Memory.** Each shape runs in a fresh process, so that no shape pays for another; the peak
(`VmHWM`) counts the interpreter, numpy, and the building of the shape too.
"""
