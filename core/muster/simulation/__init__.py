"""The scheduler in simulated time: the same `plan_cycle`, with a clock that jumps.

- `drive` is the clock and the world around the core: jobs that come and end, nodes that go down,
  notices that run out. It is fed by calls and serves scenarios and forecasts alike. Its parts:
  `world` (what exists), `carrying` (doing what a plan says), `effects` (what that makes of a
  gang), `job` (how far its work has come), `agenda` (what is due when) and `timeline` (what
  happened).
- `scenario` and `reading` are a scenario in values, from plain mappings; `play` drives one.
- `expectations` and `invariants` hold what happened against what must be true; `outcome` tells it.
- `forecast` drives the future of a copy, to say when pending gangs start.

Nothing here reads a file or a clock, and nothing here decides about a job: who does is the core.
"""
