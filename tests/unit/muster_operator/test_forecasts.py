"""When predictions are worked out anew."""

from typing import Any

import pytest

from eventually import eventually, stays
from muster.scheduling.plan import Wait, WaitReason
from muster.scheduling.policy import Policy
from muster.simulation.forecast import UNFORESEEN, Forecast
from muster_operator import forecasts
from muster_operator.cache import Cache
from muster_operator.forecasts import Forecasts
from muster_operator.metrics import Metrics

NOW = 1_767_225_700.0
WAIT = Wait("t/second", WaitReason.INSUFFICIENT_CAPACITY, "", 1)


class Desk:
    """A cluster of no nodes with a job that waits."""

    def __init__(self, every: float = 60.0) -> None:
        self.version = 0
        self.news = 0
        self.cache = Cache(
            has_scheduler=False,
            on_job=lambda uid, *, is_urgent=True: None,
            on_capacity=lambda: None,
            clock=lambda: NOW,
        )
        self.metrics = Metrics()
        self.forecasts = Forecasts(self.cache, self.metrics, every, self._told)
        self.cache.around_changed("queues", self._object("default", spec={}))
        self.job("second")

    def _told(self) -> None:
        self.news += 1

    def _object(self, name: str, **rest: Any) -> dict[str, Any]:
        self.version += 1
        metadata = {"name": name, "uid": name, "resourceVersion": str(self.version)}
        return {"metadata": metadata, **rest}

    def job(self, name: str) -> None:
        template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
        raw = self._object(name, spec={"template": template})
        raw["metadata"] |= {"namespace": "t", "creationTimestamp": "2026-01-01T00:00:00Z"}
        self.cache.job_changed(raw)

    def renew(self) -> None:
        self.forecasts.renew(Policy(), NOW)


@pytest.fixture
def foreseen(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Each forecast says that all start one second later than the last one said."""
    starts: list[float] = []

    def forecast(*_: object, **__: object) -> dict[str, Forecast]:
        starts.append(NOW + len(starts))
        return {"t/second": Forecast(starts[-1], "t/first")}

    monkeypatch.setattr(forecasts, "forecast", forecast)
    return starts


async def test_what_is_foreseen_is_told_and_kept(foreseen: list[float]) -> None:
    desk = Desk()
    assert UNFORESEEN == desk.forecasts.of(WAIT)
    desk.renew()
    await eventually(lambda: desk.news == 1)

    assert Forecast(NOW, "t/first") == desk.forecasts.of(WAIT)

    # Nothing has changed since.
    desk.renew()
    await desk.forecasts.close()
    assert 1 == len(foreseen)


async def test_a_change_is_looked_at_when_it_is_time(foreseen: list[float]) -> None:
    desk = Desk(every=0.2)
    desk.renew()
    await eventually(lambda: desk.news == 1)
    desk.job("third")
    desk.renew()
    desk.renew()
    assert 1 == len(foreseen)
    # It is not forgotten: whoever is told then asks again.
    await eventually(lambda: desk.news == 2)
    desk.renew()
    await eventually(lambda: len(foreseen) == 2)
    await desk.forecasts.close()


async def test_what_the_plan_itself_foresees_goes_first(foreseen: list[float]) -> None:
    wait = Wait("t/second", WaitReason.RESERVED, "", 1, NOW + 99, "t/other")

    assert Forecast(NOW + 99, "t/other") == Desk().forecasts.of(wait)


async def test_nothing_is_foreseen_where_nobody_wants_it(foreseen: list[float]) -> None:
    desk = Desk(every=0.0)
    desk.renew()
    await stays(lambda: desk.news == 0, during=0.1)
    await desk.forecasts.close()
    assert [] == foreseen


async def test_a_mistake_in_a_forecast_is_told_and_counted_and_nothing_is_foreseen(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> dict[str, Forecast]:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(forecasts, "forecast", fail)
    desk = Desk()
    desk.renew()
    await eventually(lambda: "forecast-failed" in caplog.text)
    await desk.forecasts.close()

    assert b'errors_total{where="forecast"} 1.0' in desk.metrics.text()
    assert UNFORESEEN == desk.forecasts.of(WAIT)
    assert 0 == desk.news
