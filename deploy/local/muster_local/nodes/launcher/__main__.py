"""`python -m muster_local.nodes.launcher RUN_DIRECTORY`."""

import sys
from pathlib import Path

from muster_local.nodes.launcher.supervisor import supervise

if __name__ == "__main__":
    supervise(Path(sys.argv[1]))
