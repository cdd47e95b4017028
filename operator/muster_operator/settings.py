"""The settings of the operator: read once, from the environment, before anything starts."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from muster import wire
from muster.errors import InvalidSpec
from muster.restarts import Backoff
from muster.scheduling.policy import Policy
from muster.steps import Rules

_PREFIX: Final = "MUSTER_"
_FOREIGN: Final = frozenset(
    {"MUSTER_CACHE", "MUSTER_HOME", "MUSTER_LOCAL"}
    | {value for name, value in vars(wire).items() if name.startswith("ENV_")}
)
"""Variables of other parts of Muster that may be in our environment too."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Each field is the variable `MUSTER_` and its name in capitals; durations such as `30s`."""

    http_host: str = "0.0.0.0"  # noqa: S104 -- probes and Prometheus come from other hosts
    """Address on which metrics and health are served."""
    http_port: int = 9402
    """Port for them; 0 takes a free one."""
    api_url: str = ""
    """Where replicas report to, as they see it; empty where there is no API."""
    has_scheduler: bool = False
    """Whether a kube-scheduler runs, so that templates that need one can be run."""
    recorder_wait: float = 30.0
    """Seconds that the recorder has to note the end of a deleted job before we let it go."""
    quiet: float = 0.02
    """Seconds without a change after which a cycle starts."""
    patience: float = 0.2
    """Seconds after which a cycle starts although changes keep coming."""
    whole_within: float = 4.0
    """Seconds without progress after which a gang that is not whole in pods is taken back."""
    start_deadline: float = 1800.0
    """Seconds in which all replicas of an attempt must run; images may take long to pull."""
    unreachable_wait: float = 60.0
    """Seconds that a deleted pod on a silent node may take before it is removed by force."""
    retry_first: float = 5.0
    """Seconds of the first pause after a refusal, and after the second short-lived attempt."""
    retry_most: float = 300.0
    """Seconds of the longest such pause."""
    port_first: int = 20_000
    """The first port that an attempt may get for its rendezvous."""
    port_count: int = 10_000
    """How many ports there are from it on; they must lie below the kernel's ephemeral ones."""
    writes: int = 64
    """Requests for pods that are under way at once."""
    message_refresh: float = 10.0
    """Seconds after which the words of an unchanged reason may be written anew."""
    events_per_second: float = 50.0
    """Events that are posted at most, on average."""
    resync: float = 300.0
    """Seconds between two full lists of our own objects, in case a watch missed a deletion."""
    preemption_notice: float = 60.0
    """Seconds between the request to save a checkpoint and the eviction; 0 asks for none."""
    usage_half_life: float = 0.0
    """Seconds after which held GPUs count half in shares; 0 counts only what is held now."""
    reservation: bool = True
    """Whether capacity is kept for the first gang that cannot start yet."""
    restart_time: float = 0.0
    """Seconds that a restart is taken to cost a victim, besides the work since its checkpoint."""
    forecast_every: float = 30.0
    """Seconds between two predictions of when waiting jobs start; 0 predicts nothing."""
    queue_status_every: float = 5.0
    """Seconds between two looks at what queues use and at what is wrong with them."""
    max_explained: int = Policy().max_explained
    """Pending jobs whose reason is worked out anew in one cycle."""
    decisions_folder: str = ""
    """Where decisions are kept with their inputs, for `muster replay`; empty: a temporary folder,
    which goes when the operator ends."""
    decisions_kept: int = 1000
    """Decisions that are kept at most; the oldest go first."""
    decisions_bytes: int = 268_435_456
    """Bytes on disk that they may take at most, compressed."""
    log_level: str = "INFO"
    """Lines below this level are not written."""
    kubeconfig: Path | None = None
    """The cluster; without it the usual places are tried. The variable is `KUBECONFIG`."""

    @property
    def policy(self) -> Policy:
        """The knobs of the scheduler."""
        return Policy(
            max_explained=self.max_explained,
            reservation=self.reservation,
            notice=self.preemption_notice,
            usage_half_life=self.usage_half_life,
            restart_time=self.restart_time,
        )

    @property
    def rules(self) -> Rules:
        """The pauses and deadlines of the life cycle."""
        return Rules(
            restart=Backoff(self.retry_first, self.retry_most, free=1),
            refused=Backoff(self.retry_first, self.retry_most),
            recorder_wait=self.recorder_wait,
            start_deadline=self.start_deadline,
            unreachable_wait=self.unreachable_wait,
            notice=self.preemption_notice,
        )


def settings_from(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in *environ*. Raises `InvalidSpec` that names the variable."""
    # Kubernetes sets *_SERVICE_* and *_PORT* for services, such as one named `muster-api`.
    services = re.compile(r"MUSTER_\w+_(SERVICE_\w+|PORT(_\d+_\w+)?)")
    known = {f.name: f for f in fields(Settings) if f.name != "kubeconfig"}
    values: dict[str, Any] = {}
    for variable, text in sorted(environ.items()):
        name = variable.removeprefix(_PREFIX).lower()
        if not variable.startswith(_PREFIX) or (variable in _FOREIGN and name not in known):
            continue
        if name not in known:
            if services.fullmatch(variable):
                continue
            raise InvalidSpec(variable, f"is no setting; known are {_names(known)}")
        values[name] = _read(variable, text, known[name].type)
    if kubeconfig := environ.get("KUBECONFIG"):
        values["kubeconfig"] = Path(kubeconfig)
    return Settings(**values)


def _names(known: Mapping[str, object]) -> str:
    return ", ".join(_PREFIX + name.upper() for name in sorted(known))


def _read(variable: str, text: str, kind: object) -> Any:
    readers: dict[object, Callable[[str], Any]] = {
        str: str,
        int: int,
        float: _seconds,
        bool: _flag,
    }
    try:
        return readers[kind](text)
    except ValueError as error:
        raise InvalidSpec(variable, f"{text!r}: {error}") from None


def _seconds(text: str) -> float:
    """A duration with or without a unit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", text)
    if match is None:
        raise ValueError("write it as 30s, 500ms, 5m or 1h")
    return float(match[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}[match[2] or "s"]


def _flag(text: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in words:
        raise ValueError("write true or false")
    return words[text.lower()]
