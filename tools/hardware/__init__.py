"""Hardware sheets: the figures of each device that plans, estimates and floors rest on.

Figures live in `data/hardware/NAME.json`, one file a device, each with its source; add a device by adding a file.
Nothing here imports torch: the command line calls it.
"""

from tools.hardware.detect import detect_sheet, match_title
from tools.hardware.peak import peak_tflops
from tools.hardware.sheets import load_sheet, sheet_names

__all__ = ["detect_sheet", "load_sheet", "match_title", "peak_tflops", "sheet_names"]
