"""The options that commands share: called and explained the same everywhere."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How a command prints what it found."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


Output = Annotated[
    Format,
    typer.Option("-o", "--output", help="How to print it; JSON goes to standard output alone."),
]
Namespace = Annotated[
    str | None,
    typer.Option("-n", "--namespace", help="Namespace; that of the current context if not given."),
]
AllNamespaces = Annotated[
    bool, typer.Option("-A", "--all-namespaces", help="Jobs of all namespaces.")
]
Context = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig to use.")
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Kubeconfig file; KUBECONFIG or ~/.kube/config otherwise."),
]
Job = Annotated[str, typer.Argument(help="Name of the TrainingJob.", show_default=False)]
