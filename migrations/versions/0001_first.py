"""The first schema: jobs, what they held and reported, prices, and the recorder's position."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "holdings",
        sa.Column("job_uid", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("replica", sa.Integer(), nullable=False),
        sa.Column("node", sa.String(253)),
        sa.Column("gpus", sa.Integer()),
        sa.Column("start_ms", sa.BigInteger()),
        sa.Column("gpu_model", sa.String(63)),
        sa.Column("capacity_type", sa.String(32)),
        sa.Column("is_simulated", sa.Boolean(), nullable=False),
        sa.Column("pod_uid", sa.String(64)),
        sa.Column("incarnation", sa.Integer(), nullable=False),
        sa.Column("pod_ended_ms", sa.BigInteger()),
        sa.Column("is_end_uncertain", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("job_uid", "attempt", "replica", name=op.f("pk_holdings")),
    )
    op.create_index(op.f("ix_holdings_node"), "holdings", ["node"])
    op.create_index(op.f("ix_holdings_pod_uid"), "holdings", ["pod_uid"])
    op.create_table(
        "jobs",
        sa.Column("uid", sa.String(64), nullable=False),
        sa.Column("namespace", sa.String(63), nullable=False),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("queue", sa.String(63), nullable=False),
        sa.Column("user_name", sa.String(512)),
        sa.Column("team", sa.String(63)),
        sa.Column("experiment", sa.String(63)),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("replicas", sa.Integer(), nullable=False),
        sa.Column("gpus_per_replica", sa.Integer(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(128), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("submitted_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger()),
        sa.Column("finished_ms", sa.BigInteger()),
        sa.Column("deleting_ms", sa.BigInteger()),
        sa.Column("deleted_ms", sa.BigInteger()),
        sa.Column("is_end_uncertain", sa.Boolean(), nullable=False),
        sa.Column("is_held", sa.Boolean(), nullable=False),
        sa.Column("is_settled", sa.Boolean(), nullable=False),
        sa.Column("status", sa.JSON(), nullable=False),
        sa.Column("epoch", sa.BigInteger()),
        sa.Column("step", sa.BigInteger()),
        sa.Column("reported_ms", sa.BigInteger()),
        sa.PrimaryKeyConstraint("uid", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_is_settled_deleted_ms"), "jobs", ["is_settled", "deleted_ms"])
    op.create_index(
        op.f("ix_jobs_namespace_name_submitted_ms"), "jobs", ["namespace", "name", "submitted_ms"]
    )
    op.create_index(op.f("ix_jobs_queue_phase"), "jobs", ["queue", "phase"])
    op.create_index(op.f("ix_jobs_submitted_ms_uid"), "jobs", ["submitted_ms", "uid"])
    op.create_table(
        "nodes",
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("gpu_model", sa.String(63)),
        sa.Column("capacity_type", sa.String(32)),
        sa.Column("is_simulated", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_nodes")),
    )
    op.create_table(
        "positions",
        sa.Column("collection", sa.String(32), nullable=False),
        sa.Column("cluster", sa.String(64), nullable=False),
        sa.Column("resource_version", sa.String(64), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("collection", name=op.f("pk_positions")),
    )
    op.create_table(
        "prices",
        sa.Column("gpu_model", sa.String(63), nullable=False),
        sa.Column("capacity_type", sa.String(32), nullable=False),
        sa.Column("from_ms", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("micro_usd_per_gpu_hour", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("gpu_model", "capacity_type", "from_ms", name=op.f("pk_prices")),
    )
    op.create_table(
        "attempts",
        sa.Column("job_uid", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("decided_ms", sa.BigInteger(), nullable=False),
        sa.Column("running_ms", sa.BigInteger()),
        sa.Column("ended_ms", sa.BigInteger()),
        sa.Column("outcome", sa.String(16)),
        sa.Column("cause", sa.String(128)),
        sa.Column("message", sa.Text()),
        sa.Column("replicas", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_uid"], ["jobs.uid"], name=op.f("fk_attempts_job_uid")),
        sa.PrimaryKeyConstraint("job_uid", "attempt", name=op.f("pk_attempts")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("job_uid", sa.String(64), nullable=False),
        sa.Column("id", sa.String(128), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("world_size", sa.Integer(), nullable=False),
        sa.Column("uri", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("verified_ms", sa.BigInteger()),
        sa.ForeignKeyConstraint(["job_uid"], ["jobs.uid"], name=op.f("fk_checkpoints_job_uid")),
        sa.PrimaryKeyConstraint("job_uid", "id", name=op.f("pk_checkpoints")),
    )
    op.create_table(
        "epochs",
        sa.Column("job_uid", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger()),
        sa.Column("finished_ms", sa.BigInteger()),
        sa.Column("step", sa.BigInteger()),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_uid"], ["jobs.uid"], name=op.f("fk_epochs_job_uid")),
        sa.PrimaryKeyConstraint("job_uid", "attempt", "epoch", name=op.f("pk_epochs")),
    )
    op.create_table(
        "metric_points",
        sa.Column("job_uid", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.String(32), nullable=False),
        sa.ForeignKeyConstraint(["job_uid"], ["jobs.uid"], name=op.f("fk_metric_points_job_uid")),
        sa.PrimaryKeyConstraint(
            "job_uid", "name", "attempt", "step", name=op.f("pk_metric_points")
        ),
    )
    op.create_table(
        "metrics",
        sa.Column("job_uid", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("value", sa.String(32), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_uid"], ["jobs.uid"], name=op.f("fk_metrics_job_uid")),
        sa.PrimaryKeyConstraint("job_uid", "name", name=op.f("pk_metrics")),
    )
    op.create_table(
        "reports",
        sa.Column("job_uid", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("replica", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("received_ms", sa.BigInteger(), nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["job_uid"], ["jobs.uid"], name=op.f("fk_reports_job_uid")),
        sa.PrimaryKeyConstraint(
            "job_uid", "attempt", "replica", "sequence", name=op.f("pk_reports")
        ),
    )


def downgrade() -> None:
    """Drop all tables."""
    for table in (
        "reports",
        "metrics",
        "metric_points",
        "epochs",
        "checkpoints",
        "attempts",
        "prices",
        "positions",
        "nodes",
        "jobs",
        "holdings",
    ):
        op.drop_table(table)
