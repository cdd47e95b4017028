"""What all tests share."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clusters import RunningCluster, running_cluster
from databases import (  # noqa: F401 -- fixtures
    database,
    database_url,
    empty_url,
    migrated_sqlite,
    postgres,
)


@pytest.fixture(scope="session")
def cluster() -> Iterator[RunningCluster]:
    """A real API server with our CRDs, roles and policies, for all tests of the session.

    It has no nodes and no operator. Each test takes a `namespace` of its own; what is cluster-wide
    (queues, nodes) needs names of its own.
    """
    directory = Path(tempfile.mkdtemp(prefix="muster-tests-"))
    try:
        with running_cluster(directory) as running:
            yield running
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def namespace(cluster: RunningCluster) -> Iterator[str]:
    """A namespace for one test."""
    name = cluster.create_namespace()
    yield name
    cluster.delete_namespace(name)
