"""`muster bench trace`: what really ran on other people's clusters, through our scheduling core.

The traces are those of published papers, so that our figures stand beside theirs. A job is as many
replicas of one GPU as it has GPUs, with no wish for topology, as in the papers' simulators. A wait
is all time without GPUs, after an eviction too; the completion time of a job runs from its
submission to its end, with every restart charged.
"""
