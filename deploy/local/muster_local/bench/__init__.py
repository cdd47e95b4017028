"""`muster bench`: how fast it is, measured on a cluster of its own.

Each benchmark compares ratios within one run, since machines are noisy; figures go to
`build/bench.json` and the README quotes them from there. Nothing here is imported by the product.
"""
