"""The `muster` command, also called as `kubectl muster`.

Each command is imported when it is called: `muster --help` answers in a third of a second, and a
part that is not installed only matters to whoever calls it. Every expected failure ends here, as
one line on standard error and an exit code of `muster_cli.errors`.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from muster.errors import Unavailable
from muster_cli import errors


@dataclass(frozen=True, slots=True)
class Lazy:
    """A command that is imported when it is called."""

    module: str
    attribute: str
    summary: str
    """What the list of commands says of it, since its own help is not loaded then."""


COMMANDS: Final = {
    "submit": Lazy("muster_cli.commands.submit", "submit", "Submit a TrainingJob."),
    "jobs": Lazy("muster_cli.commands.jobs", "jobs", "List jobs."),
    "describe": Lazy("muster_cli.commands.jobs", "describe", "Show all about a job."),
    "logs": Lazy("muster_cli.commands.logs", "logs", "Print what the replicas of a job print."),
    "cost": Lazy("muster_cli.commands.cost", "cost", "Show what a job cost, epoch by epoch."),
    "cancel": Lazy("muster_cli.commands.jobs", "cancel", "Cancel a job; its history stays."),
    "explain": Lazy(
        "muster_cli.commands.explain", "explain", "Say why a job waits, and what would start it."
    ),
    "queues": Lazy("muster_cli.commands.queues", "queues", "Show the queues and their usage."),
    "nodes": Lazy("muster_cli.commands.nodes", "nodes", "Show the nodes and their GPUs."),
    "snapshot": Lazy(
        "muster_cli.commands.replay", "snapshot", "Print what the scheduler sees, as JSON."
    ),
    "replay": Lazy(
        "muster_cli.commands.replay", "replay", "Plan again from what a decision was made of."
    ),
    "simulate": Lazy(
        "muster_cli.commands.simulate", "simulate", "Play a scenario in simulated time."
    ),
    "local": Lazy("muster_local.commands", "app", "Run a whole cluster on this machine."),
    "bench": Lazy("muster_local.bench.commands", "app", "Measure the platform."),
    "version": Lazy("muster_cli.commands.version", "version", "Print the version."),
}


class Root(TyperGroup):
    """The commands by name; those not yet called are only known by their summary."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, lazy in COMMANDS.items():
            self.add_command(TyperCommand(name, callback=None, help=lazy.summary), name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Import the command that is called."""
        if args and args[0] in COMMANDS:
            self.add_command(load(args[0]), args[0])
        return super().resolve_command(ctx, args)


def load(name: str) -> Any:
    """The command *name*, imported."""
    lazy = COMMANDS[name]
    try:
        target = getattr(import_module(lazy.module), lazy.attribute)
    except ModuleNotFoundError as error:
        raise Unavailable(
            f"`muster {name}` needs {error.name}, which is not installed; "
            "pip install 'muster-train[local]' brings it"
        ) from error
    if not isinstance(target, typer.Typer):
        # Plain help: rich's takes as long to import as all the rest.
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(target)
        target = single
    return typer.main.get_command(target)


app = typer.Typer(
    cls=Root,
    name="muster",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Train on GPUs with Kubernetes: submit jobs, follow them, and see what each epoch cost.",
)


@app.callback()
def _root() -> None:
    """Train on GPUs with Kubernetes: submit jobs, follow them, and see what each epoch cost."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command with *arguments*, else those of the process, and give back the exit code."""
    return errors.told(lambda: _run(None if arguments is None else list(arguments)))


def _run(arguments: list[str] | None) -> int:
    try:
        code = typer.main.get_command(app).main(args=arguments, standalone_mode=False)
    except typer.TyperException as error:
        message = error.format_message()
        if message.startswith("Usage: "):
            # A group called alone: its help is the answer.
            sys.stdout.write(message + "\n")
            return errors.OK
        return errors.say(_usage(error, message), error.exit_code)
    except typer.Abort:
        return errors.INTERRUPTED
    except BrokenPipeError:
        # Whoever reads us, such as `head`, has seen enough; Python must not say so at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return errors.OK
    return code if isinstance(code, int) else errors.OK


def main() -> None:
    """The entry point of the `muster` script."""
    sys.exit(run())


def _usage(error: typer.TyperException, message: str) -> str:
    """A mistake in the command line, with where to read on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "muster"
    return f"{message.rstrip('.')}; see: {path} --help"
