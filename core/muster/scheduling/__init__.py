"""The scheduler: from a snapshot of the cluster to a plan.

`plan_cycle(snapshot, policy, now)` is the one place that decides. The operator, the dry run, the
explanation and the simulator all call it. Low to high: `snapshot` and `policy` are what it sees,
`fit`, `trial`, `quota`, `order` and `placement` are its parts, `plan` is what it says, `cycle`
puts them together. `cluster` keeps the arrays that a snapshot is taken from, in place.
"""
