"""What may still be reclaimed while victims are gathered one by one."""

from collections import ChainMap

from muster.scheduling.quota import Quotas
from muster.scheduling.rights import Claims, Option


class Budget:
    """Keeps a growing set of victims allowed, at a cost that does not grow with it."""

    def __init__(self, claims: Claims, quotas: Quotas) -> None:
        self._claims = claims
        self._quotas = quotas
        self._leaving: dict[str, int] = {}
        self._least: dict[str, int] = {}
        """GPUs of the smallest victim below each queue."""
        self._log: list[tuple[dict[str, int], dict[str, int]]] = []

    def mark(self) -> int:
        """A point to which `rollback` returns."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Forget what was taken since *mark*."""
        if mark < len(self._log):
            self._leaving, self._least = self._log[mark]
            del self._log[mark:]

    def takes(self, option: Option, instead_of: Option | None = None) -> bool:
        """Take an option besides what was taken already, in the place of a lesser one of the same
        holder, if that is allowed; whether it is.
        """
        lineage = self._quotas.lineage(option.holder.queue)
        more = option.gpus - (instead_of.gpus if instead_of else 0)
        with_it = {name: self._leaving.get(name, 0) + more for name in lineage}
        if option.free_right is None:
            others = {
                name: with_it[name] - min(self._least.get(name, option.gpus), option.gpus)
                for name in lineage
            }
            if self._claims.reclaim(option, ChainMap(with_it, self._leaving), others) is None:
                return False
        self._log.append((self._leaving.copy(), self._least.copy()))
        self._leaving.update(with_it)
        for name in lineage:
            self._least[name] = min(self._least.get(name, option.gpus), option.gpus)
        return True
