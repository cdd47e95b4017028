"""The scheduler: from a snapshot of the cluster to a plan.

`plan_cycle(snapshot, policy, now)` is the one place that decides. The operator, the dry run, the
explanation and the simulator all call it. Low to high:

- what a cycle sees: `snapshot` and `policy`; as arrays, `amounts` and the static `tree`
- its parts: `fit` (may it run there at all), `room` (how often it fits, kept from cycle to cycle),
  `trial` (a what-if that can be undone), `quota`, `order`, `placement`
- what it says: `plan`, in the words of `explain` and `wording`
- `cycle` puts them together

`cluster` is what lives between cycles, with its parts `ledger` (what is held), `lanes` (who waits)
and `floor` (the nodes as arrays).
"""
