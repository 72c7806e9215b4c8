"""Holds what the cost model expects of cuDNN's float32 convolutions against what they took: the eager times of KernelBench's level 1.

Usage: python -m benchmarks.library_convolutions SUITE docs/results/kernelbench/level1.jsonl

The numbers that leave 1 when divided by 3 are those that constants are fitted to. Problem files are read in this process: point it only at
suites you trust.
"""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path

from agents.coder.traced import traced_graph
from benchmarks.kept_rows import KeptRows
from tools.codegen import initial_schedule
from tools.codegen.schedule.partition import CONVOLUTION
from tools.cost.rank_schedules import ScheduleModel
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.problems.suite import open_suite


def main() -> None:
    """Print each dense convolution's time over the modelled one, and how far off the model is in the mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=Path)
    parser.add_argument("rows", type=Path, help="a bench's rows of level 1, with eager times on an H200")
    given = parser.parse_args()
    files = {item.name: item.file for item in open_suite(given.suite).items}
    sheet, logs = load_sheet("h200"), dict[bool, list[float]]({True: [], False: []})
    for row in KeptRows(given.rows).rows:
        if row["families"] != ["convolution"] or not row["baselines_us"]:
            continue
        problem = load_problem(files[row["problem"]])
        graph = traced_graph(problem)
        model, schedule = ScheduleModel(graph, sheet, problem.policy), initial_schedule(graph)
        if [model.planned(region).template for region in schedule.regions] != [CONVOLUTION]:
            continue
        ratio = row["baselines_us"]["eager"] / (model.schedule_us(schedule) or math.nan)
        logs[row["number"] % 3 == 1].append(math.log(ratio))
        print(f"{row['problem']}: {row['baselines_us']['eager']:.0f} µs, {ratio:.2f} times as long as modelled", flush=True)
    for fitted, found in logs.items():
        off = math.exp(math.sqrt(statistics.mean(log * log for log in found)))
        print(f"{'fitted to' if fitted else 'held out'}: {len(found)} convolutions, {off:.2f} times off in the mean")


if __name__ == "__main__":
    main()
