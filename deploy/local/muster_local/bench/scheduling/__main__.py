"""One shape in this process, so that its peak of memory is its own.

python -m muster_local.bench.scheduling SHAPE 1|10
"""

import json
import os
import sys

from muster_local.bench.scheduling.shapes import measure
from muster_local.bench.usage import peak_rss_mb

shape, part = sys.argv[1:]
figures = measure(shape, int(part))
sys.stdout.write(json.dumps(figures | {"peak_rss_mb": round(peak_rss_mb(os.getpid()), 1)}) + "\n")
