"""What would happen if: answers for people, worked out by the scheduler itself on a copy.

Each is a dry run of `plan_cycle` over what a cluster was told, so that no answer can differ from
what the operator does. Low to high: `trying` (one gang, changed and tried), `variants` and
`limits` (what may be changed about it), `changes` (the smallest changes that would start a job
now), `dry_run` (what becomes of a job that is not submitted yet), `explanation` (all about one).
"""
