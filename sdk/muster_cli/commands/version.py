"""`muster version`."""

import platform
from importlib import metadata

from muster_cli import options, output

DISTRIBUTION = "muster-train"


def version(output_format: options.Output = options.Format.TABLE) -> None:
    """Print the version of this command.

    Example: muster version -o json
    """
    answer = {"muster": metadata.version(DISTRIBUTION), "python": platform.python_version()}
    output.emit(
        answer,
        output_format,
        lambda console: console.print(f"muster {answer['muster']} (Python {answer['python']})"),
    )
