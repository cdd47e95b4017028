"""`python -m muster_local.binaries [PROGRAM …]`: have the programs ready, print their paths."""

import argparse
import sys

from muster.errors import MusterError
from muster_local import recipes
from muster_local.binaries.search import find_all
from muster_local.progress import progress

_DEFAULT = (recipes.ETCD, recipes.API_SERVER, recipes.CONTROLLERS, recipes.SCHEDULER, "kwok")


def main() -> int:
    """Find, fetch or build the programs; the exit status."""
    parser = argparse.ArgumentParser(prog="muster_local.binaries", description=__doc__)
    parser.add_argument("program", nargs="*", default=_DEFAULT, help="all of a cluster's if none")
    given = parser.parse_args()
    try:
        with progress() as tell:
            found = find_all(given.program, tell)
    except MusterError as error:
        print(error, file=sys.stderr)  # noqa: T201 -- the one line a person reads
        return 3
    for path in found.values():
        print(path)  # noqa: T201 -- the result
    return 0


if __name__ == "__main__":
    sys.exit(main())
