"""The components of one directory: started together, known by name, ended in reverse."""

from collections.abc import Callable, Iterable
from pathlib import Path

from muster_local.component import Component, stop
from muster_local.interrupts import uninterrupted
from muster_local.launch import Launch, Recipe
from muster_local.progress import Tell, quiet


class Crew:
    """Starts what does not run, waits for it, and can take back what it started."""

    def __init__(
        self,
        directory: Path,
        *,
        known: Iterable[Component] = (),
        is_tethered: bool = False,
        on_change: Callable[[tuple[Component, ...]], None] = lambda components: None,
    ) -> None:
        """*known* are components of earlier runs; *on_change* is told all there are, each time."""
        self._directory = directory
        self._is_tethered = is_tethered
        self._on_change = on_change
        self._components = {component.name: component for component in known}
        self._new: set[str] = set()
        self._launches: list[Launch] = []

    def component(self, name: str) -> Component | None:
        """The component of that name, started now or earlier."""
        return self._components.get(name)

    def is_running(self, name: str) -> bool:
        """Whether the component *name* lives."""
        component = self._components.get(name)
        return component is not None and component.is_alive()

    def ensure(self, name: str, recipe: Recipe) -> None:
        """Start the component *name* unless it runs; `settle` waits for it in both cases."""
        launch = Launch(
            recipe,
            self._directory,
            before=self._components.get(name),
            is_tethered=self._is_tethered,
            on_start=self._started,
        )
        self._launches.append(launch)

    def settle(self, tell: Tell = quiet) -> None:
        """Wait until all that was ensured is ready. Raises `Failed`."""
        while self._launches:
            tell(f"waiting for {', '.join(each.component.name for each in self._launches)}")
            self._launches.pop(0).wait()

    def end(self, names: Iterable[str] | None = None) -> None:
        """End the components *names*, or all of them, the last one first."""
        chosen = set(self._components) if names is None else set(names)
        with uninterrupted():
            self._launches = [each for each in self._launches if each.component.name not in chosen]
            ended = [each for name, each in self._components.items() if name in chosen]
            stop(reversed(ended))
            self._components = {
                name: each for name, each in self._components.items() if name not in chosen
            }
            self._changed()

    def end_all_but(self, names: Iterable[str]) -> None:
        """End all components except *names*."""
        self.end(set(self._components) - set(names))

    def take_back(self) -> None:
        """End what was started here, and leave what ran before."""
        self.end(self._new)

    def _started(self, component: Component) -> None:
        # In the order of starting, which is the order of need.
        self._components.pop(component.name, None)
        self._components[component.name] = component
        self._new.add(component.name)
        self._changed()

    def _changed(self) -> None:
        self._on_change(tuple(self._components.values()))
