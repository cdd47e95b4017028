"""The recorder: keeps the history of jobs in the database, after the objects are gone.

It watches jobs, pods, nodes and the price list (`streams`), writes what changed together with how
far it came (`history`), lets ended jobs go (`endings`), and writes progress, checkpoint and cost
into their status (`telling`). It decides nothing about jobs, and may be killed at any moment.
"""
