"""A pool over several devices: work goes where there is least to do, and a device that fails is not used again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.spool_worker import ScriptedPool
from tests.tools.spool.conftest import request_of
from tools.errors import MachineError, UserError
from tools.evaluation.several import SeveralPool, capacity, open_local
from tools.hardware.devices import choose_devices


def pools(folder: Path, count: int) -> tuple[dict[str, ScriptedPool], list[Path]]:
    """Scripted devices, each with a log of its own."""
    logs = [folder / f"{number}.log" for number in range(count)]
    for log in logs:
        log.touch()
    return {f"GPU {number}": ScriptedPool(log, f"GPU {number}") for number, log in enumerate(logs)}, logs


async def test_candidates_spread_over_free_devices(tmp_path: Path) -> None:
    """Eight candidates at once on four devices are two a device, and a device has its share at the same time as the others."""
    made, logs = pools(tmp_path, 4)
    pool = SeveralPool("local (GPUs 0, 1, 2, 3: X", made)
    found = await asyncio.gather(*(pool.evaluate(request_of(f"# seconds: 0.2 {number}")) for number in range(8)))
    assert [log.read_text().count("begin") for log in logs] == [2, 2, 2, 2]
    assert {one.timing.device for one in found if one.timing} == {"GPU 0", "GPU 1", "GPU 2", "GPU 3"}
    assert all(one.timing and one.place == one.timing.device for one in found)


async def test_a_device_that_becomes_free_gets_the_next(tmp_path: Path) -> None:
    """A long evaluation holds its own device only."""
    made, logs = pools(tmp_path, 2)
    pool = SeveralPool("local (GPUs 0, 1: X", made)
    long = asyncio.create_task(pool.evaluate(request_of("# seconds: 1")))
    await asyncio.sleep(0)
    for number in range(3):
        await pool.evaluate(request_of(f"short {number}"))
    assert [log.read_text().count("begin") for log in logs] == [1, 3]
    await long


class BrokenPool(ScriptedPool):
    """A device that has fallen off its bus."""

    async def evaluate(self, request: object) -> object:  # type: ignore[override]
        """Fail."""
        raise MachineError("GPU 0 is lost.", "Reboot.")


async def test_a_failing_device_is_left_out_and_its_work_done_elsewhere(tmp_path: Path) -> None:
    """The candidate is judged by another device, which says so; the pool's name counts what is out of use."""
    made, logs = pools(tmp_path, 2)
    pool = SeveralPool("local (GPUs 0, 1: X", {**made, "GPU 0": BrokenPool(logs[0])})
    first = await pool.evaluate(request_of("a"))
    second = await pool.evaluate(request_of("b"))
    assert "GPU 0 is lost" in first.notes[-1]
    assert second.notes == ()
    assert pool.name == "local (GPUs 0, 1: X, 1 out of use)"


async def test_when_no_device_is_left_the_failure_is_told(tmp_path: Path) -> None:
    """The last device's error is raised, and every later question meets the reasons."""
    _, logs = pools(tmp_path, 2)
    pool = SeveralPool("local (GPUs 0, 1: X", {log.name: BrokenPool(log) for log in logs})
    with pytest.raises(MachineError, match="GPU 0 is lost"):
        await pool.evaluate(request_of("a"))
    with pytest.raises(MachineError, match="No device is left"):
        await pool.evaluate(request_of("b"))


async def test_no_gpu_is_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no GPU may be seen, the local pool says that it interprets."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    pool = open_local(tmp_path)
    assert pool.name == "local (interpreter)"
    await pool.close()


def test_devices_that_cannot_be_had_are_wrong_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is not there, and a word that names none, are refused with what could be given."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(UserError, match="no GPU 7"):
        choose_devices("7")
    with pytest.raises(UserError, match="'both' names no devices"):
        choose_devices("both")
    assert choose_devices("interpreter") == choose_devices("all") == ()


def test_every_gpu_has_one_to_build_while_it_times() -> None:
    """However few cores there are, a GPU pool has two evaluations a GPU under way."""
    assert capacity(8) >= 16
    assert capacity(0) >= 1
    assert [capacity(1, 16), capacity(2, 32), capacity(8, 64), capacity(8, 16)] == [8, 16, 32, 16]


@pytest.mark.gpu
@pytest.mark.skipif(not choose_devices("all"), reason="needs an NVIDIA GPU")
async def test_all_visible_gpus_are_used(tmp_path: Path) -> None:
    """On a machine with GPUs, `all` opens one pool for each that is visible and like the first."""
    pool = open_local(tmp_path)
    assert "GPU" in pool.name
    assert pool.name.count(",") == len(choose_devices("all")) - 1
    await pool.close()
