"""Decisions on disk: each comes back with its inputs, and they never take more than their room."""

from dataclasses import replace
from pathlib import Path

import pytest

from eventually import eventually
from muster.errors import NotFound
from muster.scheduling.archive import loads_record
from muster_operator.metrics import Metrics
from muster_operator.spool import GROUP, Limits, Spool
from spools import MUCH, PLAN, filled, inputs, spooling


def sizes_in(folder: Path) -> list[int]:
    return [file.stat().st_size for file in folder.iterdir()]


async def test_each_decision_comes_back_with_its_inputs(tmp_path: Path) -> None:
    async with spooling(tmp_path) as spool:
        ids = await filled(spool, GROUP + 3)

        assert ids[::-1] == [entry.id for entry in spool.entries()]
        assert ids == sorted(ids)
        for number in (0, 1, GROUP - 1, GROUP, GROUP + 2):
            record = loads_record(await spool.text_of(ids[number]))
            assert (ids[number], inputs(number), PLAN) == (
                record.id,
                record.inputs,
                record.plan,
            )


async def test_the_list_says_when_and_what(tmp_path: Path) -> None:
    async with spooling(tmp_path) as spool:
        await filled(spool, 1)
        (entry,) = spool.entries()

        assert {"at": "1970-01-01T00:16:40Z", "deeds": ["Admit team/g0"]}.items() <= (
            entry.as_json().items()
        )


async def test_what_earlier_processes_left_is_still_there(tmp_path: Path) -> None:
    async with spooling(tmp_path) as spool:
        ids = await filled(spool, 3)
    (tmp_path / "20990101T000000.000000-beef.json.gz").write_bytes(b"half a file")
    async with spooling(tmp_path) as spool:
        await eventually(lambda: len(spool.entries()) == 3)
        again = spool.put(inputs(9), PLAN)
        await eventually(lambda: len(spool.entries()) == 4)

        assert [again, *ids[::-1]] == [entry.id for entry in spool.entries()]
        assert inputs(2) == loads_record(await spool.text_of(ids[2])).inputs


async def test_what_was_handed_over_is_written_before_the_end(tmp_path: Path) -> None:
    async with spooling(tmp_path) as spool:
        await filled(spool, 1)
        late = spool.put(inputs(7), PLAN)
    async with spooling(tmp_path) as spool:
        await eventually(lambda: len(spool.entries()) == 2)

        assert inputs(7) == loads_record(await spool.text_of(late)).inputs


async def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    async with spooling(tmp_path, Limits(20, 1 << 20)) as spool:
        ids = await filled(spool, 57)
        kept = [entry.id for entry in spool.entries()]

        assert len(kept) in range(15, 21)
        assert ids[::-1][: len(kept)] == kept
        assert len(kept) == len(sizes_in(tmp_path))
        for name in kept:
            await spool.text_of(name)
        with pytest.raises(NotFound, match="only the newest"):
            await spool.text_of(ids[0])


async def test_they_never_take_more_bytes_than_allowed(tmp_path: Path) -> None:
    async with spooling(tmp_path, Limits(1000, 30_000)) as spool:
        await filled(spool, 120)

        assert sum(sizes_in(tmp_path)) <= 30_000
        assert len(sizes_in(tmp_path)) > 10


async def test_nobody_else_can_read_them(tmp_path: Path) -> None:
    async with spooling(tmp_path / "new") as spool:
        await filled(spool, 1)
        (file,) = (tmp_path / "new").iterdir()

        assert (0o600, 0o700) == (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777)


async def test_without_a_folder_they_go_with_the_process() -> None:
    async with spooling(None) as spool:
        (name,) = await filled(spool, 1)
        file = spool._file(name)

        assert file.exists()

    assert not file.exists()


async def test_a_folder_that_cannot_be_written_is_counted_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    file = tmp_path / "file"
    file.write_text("")
    async with spooling(file, metrics=metrics) as spool:
        spool.put(inputs(1), PLAN)
        await eventually(lambda: b"records_dropped_total 1.0" in metrics.text())

    assert "decisions-not-kept" in caplog.text
    assert "decision-not-written" in caplog.text


async def test_ids_grow_where_the_clock_stands_or_goes_back() -> None:
    spool = Spool(None, MUCH, Metrics())
    ids = [spool.put(replace(inputs(1), now=now), PLAN) for now in (5.0, 5.0, 4.0, 5.000001, 9.0)]

    assert ids == sorted(set(ids))


async def test_more_than_can_be_written_is_dropped_and_counted() -> None:
    metrics = Metrics()
    spool = Spool(None, MUCH, metrics)
    for number in range(201):
        spool.put(inputs(number % 2), PLAN)

    assert b"records_dropped_total 1.0" in metrics.text()
