"""The kernel of recurrent layers: one step of each layer, or of each direction, a few units and sequences a program.

A launch is told its number alone; the end of one launch is all that steps wait for. Hidden states lie in two buffers that take turns, so
what a step reads is not written while it is read. What is read and written element by element lies in one buffer, in float32: cells of an
LSTM, and hidden states of a GRU; where products round to TF32, those of others as well, since states are rounded as they are written.
"""

from __future__ import annotations

from tools.codegen.ir.recurrent import Cell, Recurrent
from tools.codegen.templates.recurrent.knobs import DIAGONAL, HELD, NOTHING, lanes_of
from tools.codegen.templates.shared.knob import ROUNDED, Settings
from tools.codegen.templates.shared.lines import block

CELLS: dict[Cell, tuple[str, ...]] = {
    Cell.LSTM: (
        "in_gate, forget_gate, new, out_gate = {split}",
        "value = tl.sigmoid(forget_gate) * value + tl.sigmoid(in_gate) * tanh_accurate(new)",
        "tl.store(cells_ptr + at, value, mask=mask)",
        "state = tl.sigmoid(out_gate) * tanh_accurate(value)",
    ),
    Cell.GRU: (
        "reset, update, new, _ = {split}",
        "reset_state, update_state, new_state, _ = {split_state}",
        "update = tl.sigmoid(update + update_state)",
        "new = tanh_accurate(new + tl.sigmoid(reset + reset_state) * new_state)",
        "state = (value - new) * update + new",
    ),
    Cell.TANH: ("state = tanh_accurate(acc)",),
    Cell.RELU: ("state = tl.where(acc < 0.0, 0.0, acc)",),
}
"""What a step makes of its sums, and of `value`: an LSTM's cell before it, or a GRU's hidden state."""
WORDS = {Cell.LSTM: "LSTM", Cell.GRU: "GRU", Cell.TANH: "tanh RNN", Cell.RELU: "ReLU RNN"}


class WaveWriter:
    """Writes the kernel."""

    def __init__(self, recurrent: Recurrent, name: str, parameters: Settings, *, kept: bool, last: bool) -> None:
        """Take the layers, the host function's name, and whether the sequence of the last layer and the last states are wanted."""
        self.recurrent, self.name, self.parameters, self.kept = recurrent, f"{name}_wave_kernel", parameters, kept
        self.slanted = parameters["waves"] == DIAGONAL
        self.gru, self.lstm = recurrent.cell is Cell.GRU, recurrent.cell is Cell.LSTM
        self.biased = recurrent.every[0].input_bias is not None
        self.rounds = recurrent.meta.dtype == "float32" and parameters["precision"] == ROUNDED
        self.whole = self.gru or (self.rounds and last)
        """Whether there are hidden states in float32 beside those that are multiplied."""
        self.early, self.held = parameters["ahead"] != NOTHING, parameters["ahead"] == HELD

    @property
    def tensors(self) -> list[str]:
        """Name what the kernel is given, in order."""
        names = ["projected"]
        names += ["inner"] if self.slanted else []
        names += ["weights"]
        names += ["input_bias", "hidden_bias"] if self.biased else []
        names += ["states"]
        names += ["cells"] if self.lstm else []
        names += ["hidden"] if self.whole else []
        return [*names, "result"] if self.kept else names

    @property
    def numbers(self) -> list[str]:
        """Name its whole numbers, in order."""
        kept = ["result_t", "result_b"] if self.kept else []
        return ["n_steps", "n_batch", "n_hidden", "n_cells", "projected_t", "projected_b", *kept]

    def kernel(self) -> list[str]:
        """Write the kernel."""
        cell = self.recurrent.cell
        first = [] if self.slanted else ["first"]
        told = ", ".join(f'"{name}"' for name in ["wave", *first])
        parameters = [*(f"{name}_ptr" for name in self.tensors), "wave", *first, *self.numbers]
        constants = [f"{name}: tl.constexpr" for name in self.constants]
        what = "One step of every layer, the layers one step apart" if self.slanted else "One step of a layer, in each direction"
        early = [
            "if EARLY:",
            "    tl.extra.cuda.gdc_wait()",
            # only now, so that no more than one launch waits beside this one
            "    tl.extra.cuda.gdc_launch_dependents()",
        ]
        return [
            f"@triton.jit(do_not_specialize=[{told}])",
            *block(f"def {self.name}", [*parameters, *constants], ":"),
            f'    """{what}: {WORDS[cell]}, BLOCK_H units of all gates for BLOCK_B sequences a program."""',
            *("    " + line for line in [*self._place(), *self._offsets(), *self._fixed(), *(early if self.early else [])]),
            "    if (step >= 0) & (step < n_steps):",
            *("        " + line for line in [*self._loads(), *self._sums(), *self._cell()]),
        ]

    @property
    def constants(self) -> list[str]:
        """Name what it is compiled for, in order."""
        early = ["EARLY"] if self.early else []
        return [*early, "EVEN", "BLOCK_B", "BLOCK_H", "BLOCK_K", *([] if self.held else ["STAGES"])]

    @property
    def _width(self) -> str:
        lanes = lanes_of(self.recurrent.cell)
        return f"{lanes} * BLOCK_H" if lanes > 1 else "BLOCK_H"

    def _place(self) -> list[str]:
        """Write which step of what a program makes."""
        if self.slanted:
            return ["cell = tl.program_id(0)", "step = wave - cell", "turn = step % 2"]
        direction = ["direction = tl.program_id(0)", "cell = first + direction"]
        both = self.recurrent.directions == 2
        return [*direction, f"step = {'tl.where(direction == 0, wave, n_steps - 1 - wave)' if both else 'wave'}", "turn = wave % 2"]

    def _offsets(self) -> list[str]:
        """Write which units and sequences are a program's, and where their weights lie."""
        lanes, gates = lanes_of(self.recurrent.cell), self.recurrent.cell.gates
        lines = [
            "off_b = tl.program_id(2) * BLOCK_B + tl.arange(0, BLOCK_B)",
            "off_h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)",
            f"lane = tl.arange(0, {self._width})",
            "unit = tl.program_id(1) * BLOCK_H + lane % BLOCK_H" if lanes > 1 else "unit = off_h",
            "row = lane // BLOCK_H * n_hidden + unit" if lanes > 1 else "row = unit",
            "off_k = tl.arange(0, BLOCK_K)",
            "mask_b = off_b < n_batch",
            f"mask_n = (unit < n_hidden) & (lane < {gates} * BLOCK_H)" if lanes != gates else "mask_n = unit < n_hidden",
            "mask = mask_b[:, None] & (off_h < n_hidden)[None, :]",
            f"n_rows = {gates} * n_hidden" if gates > 1 else "n_rows = n_hidden",
            "n_values = n_batch * n_hidden",
            "weight = weights_ptr + cell.to(tl.int64) * n_rows * n_hidden + row[None, :] * n_hidden + off_k[:, None]",
        ]
        if self.slanted:
            lines += [
                # the first layer has nothing below: its inputs were multiplied for all steps
                "below_cell = tl.maximum(cell - 1, 0)",
                "n_below = tl.where(cell > 0, n_hidden, 0)",
                "inner = inner_ptr + below_cell.to(tl.int64) * n_rows * n_hidden + row[None, :] * n_hidden + off_k[:, None]",
            ]
        return lines

    def _fixed(self) -> list[str]:
        """Load what no launch ahead writes."""
        lines = []
        if self.biased:
            lines.append("bias = tl.load(input_bias_ptr + cell * n_rows + row, mask=mask_n, other=0.0).to(tl.float32)")
            lines.append("state_bias = tl.load(hidden_bias_ptr + cell * n_rows + row, mask=mask_n, other=0.0).to(tl.float32)")
        if self.held:
            lines.append("mask_k = off_k < n_hidden")
            lines.append(f"right = {_load('weight', 'mask_n[None, :]', 'mask_k[:, None]')}")
            if self.slanted:
                lines.append("mask_below = off_k < n_below")
                lines.append("right_below = tl.load(inner, mask=mask_n[None, :] & mask_below[:, None], other=0.0)")
        return lines

    def _loads(self) -> list[str]:
        """Load what is not summed, so that it has come when sums are made."""
        mine = "" if self.slanted else " + direction * n_rows"
        lines = [
            "own = states_ptr + (turn * n_cells + cell) * n_values + off_b[:, None] * n_hidden + off_k[None, :]",
            "at = cell * n_values + off_b[:, None] * n_hidden + off_h[None, :]",
            f"given = projected_ptr + step.to(tl.int64) * projected_t{mine} + off_b[:, None] * projected_b + row[None, :]",
        ]
        if self.slanted:
            place = "((1 - turn) * n_cells + below_cell) * n_values"
            lines.append(f"below = states_ptr + {place} + off_b[:, None] * n_hidden + off_k[None, :]")
            lines.append("mask_given = mask_n & (tl.where(cell == 0, unit, n_hidden) < n_hidden)")
        only = "mask_given" if self.slanted else "mask_n"
        lines.append(f"start = tl.load(given, mask=mask_b[:, None] & {only}[None, :], other=0.0).to(tl.float32)")
        if self.lstm:
            lines.append("value = tl.load(cells_ptr + at, mask=mask, other=0.0)")
        if self.gru:
            lines.append("value = tl.load(hidden_ptr + at, mask=mask, other=0.0)")
        return lines

    def _sums(self) -> list[str]:
        """Write the products: step by step along the sum, or at once with weights that are there."""
        lines = [f"acc = tl.zeros([BLOCK_B, {self._width}], tl.float32)"]
        if self.gru:
            lines.append(f"acc_state = tl.zeros([BLOCK_B, {self._width}], tl.float32)")
        left, below = f"left = {_load('own', 'mask_b[:, None]', 'mask_k[None, :]')}", []
        if self.slanted:
            below = ["left_below = tl.load(below, mask=mask_b[:, None] & mask_below[None, :], other=0.0)"]
        dots = [self._dot("acc_state" if self.gru else "acc", "left", "right")]
        dots += [self._dot("acc", "left_below", "right_below")] if self.slanted else []
        if self.held:
            lines += [left, *below, *dots]
        else:
            loop = ["mask_k = off_k < n_hidden - start_k", left, f"right = {_load('weight', 'mask_n[None, :]', 'mask_k[:, None]')}"]
            if self.slanted:
                loop += ["mask_below = off_k < n_below - start_k", *below]
                loop.append("right_below = tl.load(inner, mask=mask_n[None, :] & mask_below[:, None], other=0.0)")
            loop += [*dots, *(f"{pointer} += BLOCK_K" for pointer in ("own", "weight", *(("below", "inner") if self.slanted else ())))]
            lines += ["for start_k in tl.range(0, n_hidden, BLOCK_K, num_stages=STAGES):", *("    " + line for line in loop)]
        if self.gru:
            lines.append(f"acc += start{' + bias[None, :]' if self.biased else ''}")
            return [*lines, "acc_state += state_bias[None, :]"] if self.biased else lines
        return [*lines, f"acc += start{' + (bias + state_bias)[None, :]' if self.biased else ''}"]

    def _dot(self, acc: str, left: str, right: str) -> str:
        if self.recurrent.meta.dtype != "float32":
            return f"{acc} = tl.dot({left}, {right}, {acc})"
        return f'{acc} = tl.dot({left}, {right}, {acc}, input_precision="{self.parameters["precision"]}")'

    def _cell(self) -> list[str]:
        """Write what the sums become, and where it goes."""
        texts = {"split": "four_gates(acc, BLOCK_B, BLOCK_H)", "split_state": "four_gates(acc_state, BLOCK_B, BLOCK_H)"}
        lines = [line.format(**texts) for line in CELLS[self.recurrent.cell]]
        written = "nearest_tf32(state)" if self.rounds else "state"
        lines.append(f"tl.store(states_ptr + (1 - turn) * n_cells * n_values + at, {written}, mask=mask)")
        if self.whole:
            lines.append("tl.store(hidden_ptr + at, state, mask=mask)")
        if self.kept:
            mine = "" if self.slanted else " + direction * n_hidden"
            if self.slanted:
                lines.append("mask &= (tl.where(cell == n_cells - 1, off_h, n_hidden) < n_hidden)[None, :]")
            lines.append(f"made = result_ptr + step.to(tl.int64) * result_t{mine} + off_b[:, None] * result_b + off_h[None, :]")
            lines.append("tl.store(made, state, mask=mask)")
        return lines


def _load(pointers: str, mask: str, mask_k: str) -> str:
    return f"tl.load({pointers}, mask={mask} if EVEN else {mask} & {mask_k}, other=0.0)"
