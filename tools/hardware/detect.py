"""Finding out which device this machine has, through NVML and without torch."""

from __future__ import annotations

from tools.errors import UserError
from tools.hardware.devices import visible_devices
from tools.hardware.sheets import load_sheet, sheet_names
from tools.records import HardwareSheet


def detect_sheet() -> HardwareSheet | None:
    """Return the sheet of the first NVIDIA GPU this process may use; None where there is no driver or no GPU.

    A GPU without a sheet raises UserError.
    """
    title = device_title()
    return match_title(title) if title is not None else None


def device_title() -> str | None:
    """Title of the first visible NVIDIA GPU as the driver reports it, or None; `CUDA_VISIBLE_DEVICES` is respected."""
    return next(iter(visible_devices().values()), None)


def match_title(title: str) -> HardwareSheet:
    """Return the sheet whose title is `title`; a device without a sheet raises UserError.

    The whole title must agree: a PCIe or laptop device of the same name has other clocks, memory and processors.
    """
    for name in sheet_names():
        if (sheet := load_sheet(name)).title.casefold() == title.casefold():
            return sheet
    raise UserError(
        f"There is no hardware sheet for this machine's {title!r}.",
        f"Name the nearest device with --target ({', '.join(sheet_names())}), or add data/hardware/NAME.json with that title.",
    )


def refuse_other_target(title: str, target: HardwareSheet) -> None:
    """Raise UserError where the device called `title` has a sheet and `target` is another's.

    Times would be compared with wrong bounds. A device without a sheet may be timed under the nearest device's.
    """
    if not title or title.casefold() == target.title.casefold():
        return
    own = next((name for name in sheet_names() if load_sheet(name).title.casefold() == title.casefold()), None)
    if own is not None:
        raise UserError(
            f"What is timed here runs on an {title}, and the target is {target.title}.",
            f"Leave --target out or say --target {own}; without the GPU (interpreter) another target's times can be estimated.",
        )
