"""Muster's REST API, and the recorder that keeps history.

A folder a feature: `routes` speaks HTTP, `schemas` is the JSON, `service` does the work and never
commits. Errors become problem details in `errors`, tokens are checked in `auth`, the API server is
reached through `cluster`. `facts` reads Kubernetes objects. No SQL here: see `muster_db`.
"""
