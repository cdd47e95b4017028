"""The tables. `migrations/` makes them; a test holds the two together.

A job is one row by uid and outlives its deletion. `*_ms` are milliseconds since the epoch.
"""

from typing import Final

import sqlalchemy as sa

_NAMES: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata: Final = sa.MetaData(naming_convention=_NAMES)


def _of_job() -> sa.Column[str]:
    """The job that a row belongs to."""
    return sa.Column("job_uid", sa.String(64), sa.ForeignKey("jobs.uid"), primary_key=True)


jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("uid", sa.String(64), primary_key=True),
    sa.Column("namespace", sa.String(63), nullable=False),
    sa.Column("name", sa.String(253), nullable=False),
    sa.Column("queue", sa.String(63), nullable=False),
    sa.Column("user_name", sa.String(512)),
    sa.Column("team", sa.String(63)),
    sa.Column("experiment", sa.String(63)),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("replicas", sa.Integer, nullable=False),
    sa.Column("gpus_per_replica", sa.Integer, nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("phase", sa.String(16), nullable=False),
    sa.Column("reason", sa.String(128), nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("submitted_ms", sa.BigInteger, nullable=False),
    sa.Column("started_ms", sa.BigInteger),
    sa.Column("finished_ms", sa.BigInteger),
    # Deletion was asked for; the object may wait for its finalizers.
    sa.Column("deleting_ms", sa.BigInteger),
    sa.Column("deleted_ms", sa.BigInteger),
    # It vanished while nobody watched: its end is the last moment at which it was known.
    sa.Column("is_end_uncertain", sa.Boolean, nullable=False, default=False),
    # The recorder's finalizer is on it.
    sa.Column("is_held", sa.Boolean, nullable=False, default=False),
    # Its end is known and told in its status: nothing will change any more.
    sa.Column("is_settled", sa.Boolean, nullable=False, default=False),
    sa.Column("status", sa.JSON, nullable=False),
    # What its ranks reported last.
    sa.Column("epoch", sa.BigInteger),
    sa.Column("step", sa.BigInteger),
    sa.Column("reported_ms", sa.BigInteger),
    sa.Index(None, "namespace", "name", "submitted_ms"),
    sa.Index(None, "submitted_ms", "uid"),
    sa.Index(None, "queue", "phase"),
    sa.Index(None, "is_settled", "deleted_ms"),
)

attempts = sa.Table(
    "attempts",
    metadata,
    _of_job(),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("decided_ms", sa.BigInteger, nullable=False),
    sa.Column("running_ms", sa.BigInteger),
    sa.Column("ended_ms", sa.BigInteger),
    sa.Column("outcome", sa.String(16)),
    sa.Column("cause", sa.String(128)),
    sa.Column("message", sa.Text),
    sa.Column("replicas", sa.Integer, nullable=False),
    sa.Column("gpus", sa.Integer, nullable=False),
    sa.Column("nodes", sa.JSON, nullable=False),
)

# What one replica held in one attempt. No foreign key: pods and jobs are watched apart, so that a
# pod may be seen before its job. `start_ms` is the decision's; until that is seen, nothing counts.
holdings = sa.Table(
    "holdings",
    metadata,
    sa.Column("job_uid", sa.String(64), primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("replica", sa.Integer, primary_key=True),
    sa.Column("node", sa.String(253)),
    sa.Column("gpus", sa.Integer),
    sa.Column("start_ms", sa.BigInteger),
    # Copied from the node, which may be gone, or be another one of that name, when we are asked.
    sa.Column("gpu_model", sa.String(63)),
    sa.Column("capacity_type", sa.String(32)),
    sa.Column("is_simulated", sa.Boolean, nullable=False, default=False),
    sa.Column("pod_uid", sa.String(64)),
    sa.Column("incarnation", sa.Integer, nullable=False, default=0),
    sa.Column("pod_ended_ms", sa.BigInteger),
    sa.Column("is_end_uncertain", sa.Boolean, nullable=False, default=False),
    sa.Index(None, "node"),
    sa.Index(None, "pod_uid"),
)

reports = sa.Table(
    "reports",
    metadata,
    _of_job(),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("replica", sa.Integer, primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True),
    sa.Column("received_ms", sa.BigInteger, nullable=False),
    sa.Column("items", sa.Integer, nullable=False),
)

epochs = sa.Table(
    "epochs",
    metadata,
    _of_job(),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("epoch", sa.BigInteger, primary_key=True),
    sa.Column("started_ms", sa.BigInteger),
    sa.Column("finished_ms", sa.BigInteger),
    sa.Column("step", sa.BigInteger),
    sa.Column("metrics", sa.JSON, nullable=False),
)

# Values are text: SQLite has no NaN, and a lost gradient is what a user most wants to see.
metrics = sa.Table(
    "metrics",
    metadata,
    _of_job(),
    sa.Column("name", sa.String(128), primary_key=True),
    sa.Column("value", sa.String(32), nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("step", sa.BigInteger, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
)

metric_points = sa.Table(
    "metric_points",
    metadata,
    _of_job(),
    sa.Column("name", sa.String(128), primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("step", sa.BigInteger, primary_key=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("at_ms", sa.BigInteger, nullable=False),
    sa.Column("value", sa.String(32), nullable=False),
)

checkpoints = sa.Table(
    "checkpoints",
    metadata,
    _of_job(),
    sa.Column("id", sa.String(128), primary_key=True),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("step", sa.BigInteger, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("world_size", sa.Integer, nullable=False),
    sa.Column("uri", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("created_ms", sa.BigInteger, nullable=False),
    sa.Column("verified_ms", sa.BigInteger),
)

prices = sa.Table(
    "prices",
    metadata,
    sa.Column("gpu_model", sa.String(63), primary_key=True),
    sa.Column("capacity_type", sa.String(32), primary_key=True),
    sa.Column("from_ms", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("micro_usd_per_gpu_hour", sa.BigInteger, nullable=False),
)

nodes = sa.Table(
    "nodes",
    metadata,
    sa.Column("name", sa.String(253), primary_key=True),
    sa.Column("gpu_model", sa.String(63)),
    sa.Column("capacity_type", sa.String(32)),
    sa.Column("is_simulated", sa.Boolean, nullable=False),
)

# How far the recorder came in each collection; written with the rows that it came from.
positions = sa.Table(
    "positions",
    metadata,
    sa.Column("collection", sa.String(32), primary_key=True),
    sa.Column("cluster", sa.String(64), nullable=False),
    sa.Column("resource_version", sa.String(64), nullable=False),
    sa.Column("seen_ms", sa.BigInteger, nullable=False),
)
