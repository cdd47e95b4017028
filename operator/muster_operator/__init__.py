"""The operator: it keeps the cluster as the jobs' placements say.

Low to high: `settings`, `metrics`, `pod_facts`, `render` and `quota` compute; `cache` holds what
the watches say; `status_writer`, `stories`, `carry_out` and `admission` speak to the API server;
`reconcile` does one job's next step; `cycles` asks the scheduler; `handlers`, `sources` and `http`
are the edges; `run` puts them together. Decisions are in the core; nothing here decides a
placement, a cause or a next phase.
"""
