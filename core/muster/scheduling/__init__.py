"""The scheduler: from a snapshot of the cluster to a plan.

`plan_cycle(snapshot, policy, now)` is the one place that decides. The operator, the dry run, the
explanation and the simulator all call it. Low to high:

- what a cycle sees: `snapshot` and `policy`; as arrays, `amounts` and the static `tree`
- its parts: `fit` (may it run there at all), `room` (how often it fits, kept from cycle to cycle),
  `trial` (a what-if that can be undone), `quota` and `usage`, `fair_share`, `order`, `placement`
- who holds what: `holders`; who may take it: `rights`, `movable` (the most that could leave), and
  who leaves at the least cost: `ground`, `victims`, `gathering`
- `state` is one moment, now or to come, of which both are asked; `reservation` and `backfill` are
  about moments to come, `outlook` about gangs that have no hope now
- the steps of a cycle: `underway`, `repair`, `near`, `taking`, `growth`, and what they decide,
  `deeds`
- what it says: `plan`, in the words of `explain`, `waits` and `wording`; `waking` is when time
  alone changes that
- `cycle` puts them together

`cluster` is what lives between cycles, with its parts `ledger` (what is held), `lanes` (who waits)
and `floor` (the nodes as arrays). Beside it: `archive` (snapshots and plans as JSON), `standing`
and `fragments` (for people), `sanity` (what is wrong with queues and topologies).
"""
