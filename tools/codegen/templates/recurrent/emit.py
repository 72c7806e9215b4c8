"""The host function of recurrent layers: the library's products of all inputs, then a launch for each wave.

The inputs of a layer are multiplied for all steps at once where they are all there: those of the first layer, and of each layer where
layers follow one another. What is left to each step is the product of its hidden states, and of the layer below where steps of several
layers are made at once.
"""

from __future__ import annotations

from tools.codegen.ir.graph import Ref
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.recurrent import Cell, LayerWeights, Recurrent
from tools.codegen.templates.recurrent.knobs import DIAGONAL, lanes_of, recurrent_of
from tools.codegen.templates.recurrent.wave import WORDS, WaveWriter
from tools.codegen.templates.shared.frame import RegionText, shape_words
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.lines import block
from tools.codegen.templates.shared.naming import Names, value_name

OWN_NAMES = (
    "projected", "inner", "weights", "input_bias", "hidden_bias", "states", "cells", "hidden", "result", "wave", "n_steps", "n_batch",
    "n_hidden", "n_cells", "n_summed", "early", "grid",
)  # fmt: skip
SEQUENCE, HIDDEN, CELLS = 0, 1, 2
"""Places of the results."""


def emit(kernel: Kernel, name: str, parameters: Settings) -> RegionText:
    """Write the kernel and its host function."""
    return _Writer(kernel, name, parameters).write()


class _Writer:
    """Writes one region."""

    def __init__(self, kernel: Kernel, name: str, parameters: Settings) -> None:
        self.kernel, self.name, self.parameters = kernel, name, parameters
        self.recurrent: Recurrent = recurrent_of(kernel)
        names = Names(OWN_NAMES)
        self.given: dict[Ref, str] = {}
        for ref in dict.fromkeys(load.ref for load in kernel.builder.loads):
            self.given[ref] = names.fresh(value_name(ref))
        self.slanted = parameters["waves"] == DIAGONAL
        kept = not self.slanted or SEQUENCE in self.recurrent.results
        self.wave = WaveWriter(self.recurrent, name, parameters, kept=kept, last=HIDDEN in self.recurrent.results)

    def write(self) -> RegionText:
        """Write kernel and host function."""
        helpers = [] if self.recurrent.cell is Cell.RELU else ["tanh"]
        helpers += ["four_gates"] if lanes_of(self.recurrent.cell) > 1 else []
        helpers += ["nearest_tf32"] if self.wave.rounds else []
        helpers += ["early_launch"] if self.wave.early else []
        source = "\n".join([*self.wave.kernel(), "", "", *self._host()])
        outputs = tuple(output.ref for output in self.kernel.outputs)
        return RegionText(self.name, tuple(self.given), outputs, source, tuple(helpers))

    def _host(self) -> list[str]:
        recurrent, several = self.recurrent, len(self.kernel.outputs)
        returns = "torch.Tensor" if several == 1 else f"tuple[{', '.join(['torch.Tensor'] * several)}]"
        layers = len(recurrent.layers)
        what = f"{layers} layers of {WORDS[recurrent.cell]} with {recurrent.hidden[0]} units" if layers > 1 else WORDS[recurrent.cell]
        return [
            *block(f"def {self.name}", [f"{name}: torch.Tensor" for name in self.given.values()], f" -> {returns}:"),
            f'    """{what} on {shape_words(recurrent.meta)}, a launch for each wave of steps."""',
            *("    " + line for line in [*self._sizes(), *self._buffers(), *(self._diagonal() if self.slanted else self._layered())]),
            f"    return {', '.join(self._results())}",
        ]

    def _sizes(self) -> list[str]:
        x, order = self.given[self.recurrent.given], (0, 1) if self.recurrent.batch_first else (1, 0)
        hidden = self.given[self.recurrent.every[0].hidden]
        return [
            f"n_batch, n_steps = {x}.shape[{order[0]}], {x}.shape[{order[1]}]",
            f"n_hidden, n_cells = {hidden}.shape[1], {len(self.recurrent.every)}",
            *(["n_summed = max(16, triton.next_power_of_2(n_hidden))"] if self.wave.held else []),
            *([f"early = early_launch({x})"] if self.wave.early else []),
        ]

    def _buffers(self) -> list[str]:
        """Write the weights one after the other, the states, and what the sequence is kept in."""
        recurrent, device = self.recurrent, f"{self.given[self.recurrent.given]}.device"
        dtype = f"torch.{recurrent.meta.dtype}"
        lines = self._stacked("weights", [one.hidden for one in recurrent.every], multiplied=True)
        if self.slanted:
            lines += self._stacked("inner", [one.inputs for one in recurrent.every[1:]], multiplied=True)
        if self.wave.biased:
            lines += self._stacked("input_bias", [ref for one in recurrent.every if (ref := one.input_bias)])
            lines += self._stacked("hidden_bias", [ref for one in recurrent.every if (ref := one.hidden_bias)])
        size = "n_cells, n_batch, n_hidden"
        start = "empty" if recurrent.states else "zeros"
        lines.append(f"states = torch.{start}((2, {size}), dtype={dtype}, device={device})")
        if recurrent.states:
            lines.append(f"states[0] = {self._rounded(self.given[recurrent.states[0]])}")
        apart = (["cells"] if recurrent.cell is Cell.LSTM else []) + (["hidden"] if self.wave.whole else [])
        for name in apart:
            lines.append(f"{name} = torch.{start}(({size}), dtype=torch.float32, device={device})")
            if recurrent.states:
                lines.append(f"{name}.copy_({self.given[recurrent.states[name == 'cells']]})")
        return lines

    def _rounded(self, text: str) -> str:
        return f"to_tf32({text})" if self.wave.rounds else text

    def _stacked(self, name: str, refs: list[Ref], *, multiplied: bool = False) -> list[str]:
        """Write tensors one after the other, in the digits that products take."""
        names, rounds = [self.given[ref] for ref in refs], multiplied and self.wave.rounds
        if len(names) == 1:
            return [f"{name} = {f'to_tf32({names[0]})' if rounds else f'{names[0]}.contiguous()'}"]
        return block(f"{name} = {'to_tf32(' if rounds else ''}torch.stack(", names, "))" if rounds else ")")

    def _empty(self, name: str) -> str:
        """Write the tensor of a layer's sequence."""
        sizes = "n_batch, n_steps" if self.recurrent.batch_first else "n_steps, n_batch"
        width = "2 * n_hidden" if self.recurrent.directions == 2 else "n_hidden"
        return f"{name} = torch.empty(({sizes}, {width}), dtype=torch.{self.recurrent.meta.dtype}, device=projected.device)"

    def _launch(self, *, first: str = "") -> list[str]:
        """Write the grid and one launch."""
        p = self.parameters
        steps, batch = (1, 0) if self.recurrent.batch_first else (0, 1)
        strides = [f"{name}.stride({dim})" for name in ("projected", *(["result"] if self.wave.kept else [])) for dim in (steps, batch)]
        held = self.wave.held
        values = {
            "EARLY": "bool(early)",
            "EVEN": "n_hidden == n_summed" if held else f"n_hidden % {p['BLOCK_K']} == 0",
            "BLOCK_B": p["BLOCK_B"],
            "BLOCK_H": p["BLOCK_H"],
            "BLOCK_K": "n_summed" if held else p["BLOCK_K"],
            "STAGES": p["num_stages"],
        }
        constants = [*(f"{name}={values[name]}" for name in self.wave.constants), f"num_warps={p['num_warps']}"]
        constants += ["**early"] if self.wave.early else []
        sizes = ["n_steps", "n_batch", "n_hidden", "n_cells", *strides]
        return block(f"{self.wave.name}[grid]", [*self.wave.tensors, "wave", *([first] if first else []), *sizes, *constants], "")

    def _grid(self) -> str:
        places = "n_cells" if self.slanted else str(self.recurrent.directions)
        p = self.parameters
        return f"grid = ({places}, triton.cdiv(n_hidden, {p['BLOCK_H']}), triton.cdiv(n_batch, {p['BLOCK_B']}))"

    def _diagonal(self) -> list[str]:
        first = self.recurrent.every[0]
        lines = [f"projected = F.linear({self.given[self.recurrent.given]}, {self.given[first.inputs]})"]
        lines += [self._empty("result")] if self.wave.kept else []
        return [
            *lines,
            self._grid(),
            "for wave in range(n_steps + n_cells - 1):",
            *("    " + line for line in self._launch()),
        ]

    def _layered(self) -> list[str]:
        lines = [self._grid()]
        for place, layer in enumerate(self.recurrent.layers):
            given = "result" if place else self.given[self.recurrent.given]
            lines += [f"projected = F.linear({given}, {self._both(layer)})", self._empty("result")]
            lines += ["for wave in range(n_steps):", *("    " + line for line in self._launch(first=str(place * len(layer))))]
        return lines

    def _both(self, layer: tuple[LayerWeights, ...]) -> str:
        names = [self.given[one.inputs] for one in layer]
        return names[0] if len(names) == 1 else f"torch.cat(({', '.join(names)}))"

    def _results(self) -> list[str]:
        """Write what is read of the results: the last states lie where the last wave has left them."""
        cast = f".to(torch.{self.recurrent.meta.dtype})" if self.recurrent.meta.dtype != "float32" else ""
        states = f"hidden{cast}" if self.wave.whole else "states[n_steps % 2]"
        texts = {SEQUENCE: "result", HIDDEN: states, CELLS: f"cells{cast}"}
        return [texts[output.ref.index] for output in self.kernel.outputs]
