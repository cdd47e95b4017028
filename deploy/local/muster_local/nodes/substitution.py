"""The way without mount namespaces: real paths and addresses in place of those a pod expects.

Only computes. It reaches environment, command and arguments, but not what a script has written
into itself; an event on the pod says so.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from muster_local.nodes.fields import LOOPBACK
from muster_local.nodes.launcher.launch import Mount


def substitution(mounts: Sequence[Mount], names: Iterable[str]) -> Callable[[str], str]:
    """A function that puts sources in place of targets, and the address in place of names.

    A path counts where nothing goes on before it or, within its last part, after it: of `/data`,
    `file:///data/x` and `--dir=/data` are meant, `/mnt/data` and `/database` are not.
    """
    sources = {mount.target.rstrip("/"): mount.source for mount in mounts}
    paths = "|".join(re.escape(each) for each in sorted(sources, key=len, reverse=True))
    hosts = "|".join(re.escape(each) for each in sorted(names, key=len, reverse=True))
    path_pattern = re.compile(rf"(?:(?<=file://)|(?<![\w.~/-]))(?:{paths})(?![\w.-])")
    host_pattern = re.compile(rf"(?<![\w.-])(?:{hosts})(?![\w-]|\.\w)")

    def substitute(text: str) -> str:
        if paths:
            text = path_pattern.sub(lambda match: sources[match[0]], text)
        if hosts:
            text = host_pattern.sub(LOOPBACK, text)
        return text

    return substitute
