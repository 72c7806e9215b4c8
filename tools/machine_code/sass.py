"""Reads the text that cuobjdump prints for a cubin: resource usage, and the static mix of machine instructions."""

from __future__ import annotations

import re
from typing import NamedTuple

CLASSES = ("load", "store", "shared", "tensor", "fp", "integer", "control", "barrier", "other")
"""The keys of an instruction mix, besides `load_bytes_max` and `store_bytes_max`."""

_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_USAGE = re.compile(r"^ Function (\S+):\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", re.MULTILINE)
_FUNCTION = re.compile(r"^\s*Function : (\S+)\s*$", re.MULTILINE)

_OPCODES = {
    "load": "LD LDG LDGSTS LDGMC UTMALDG UBLKCP",
    "store": "ST STG RED REDG ATOM ATOMG UTMASTG UTMAREDG UBLKRED",
    # shared memory, and the tensor memory of sm_100 that plays its part
    "shared": "LDS STS LDSM STSM LDSLK ATOMS STAS LDTM STTM UTCCP LDT STT",
    "fp": "MUFU FCHK FRND FSWZADD F2F F2FP F2I I2F I2FP F2IP HADD2 HMUL2 HFMA2 HSETP2 HSET2 HMNMX2 DADD DMUL DFMA DSETP DMNMX",
    "control": "BRA BRX BRXU JMP JMX JMXU EXIT RET CALL BSSY BSYNC BREAK WARPSYNC KILL NANOSLEEP YIELD BPT BMOV RPCMOV ELECT PREEXIT "
    "ENDCOLLECTIVE CGAERRBAR WARPSYNCCOLLECTIVE",
    "barrier": "BAR B2R R2B MEMBAR FENCE DEPBAR LDGDEPBAR SYNCS ARRIVES WARPGROUP WARPGROUPSET UCGABAR_ARV UCGABAR_WAIT ERRBAR CCTL CCTLL "
    "UTCBAR UTMACMDFLUSH ACQBULK",
    "integer": "IADD IADD3 IMAD IMUL IABS IMNMX ISETP ISET ISCADD IDP IDP4A LEA LOP LOP3 PLOP3 SHF SHL SHR SEL PRMT POPC FLO BREV BMSK BFE "
    "SGXT VIADD VIADDMNMX VIMNMX VIMNMX3 VABSDIFF VABSDIFF4 I2I I2IP IADD64 LEA3",
}  # fmt: skip
_CLASS_OF = {opcode: name for name, opcodes in _OPCODES.items() for opcode in opcodes.split()}

_TENSOR = re.compile(r"^(?:U?T?C?[HIDBQO]MMA|[HIQB]GMMA|UTC[HIQO]MMA)$")
_FLOAT = re.compile(r"^F(?:ADD|MUL|FMA|SETP|SET|SEL|MNMX|CMP)\d?(?:32I)?$")
_ACCESS_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_WORD_BYTES = 4
_BULK_BYTES = 16
"""The tensor memory accelerator copies in units of 16 bytes (CUDA Programming Guide, asynchronous data copies: bulk copy sizes)."""


class Usage(NamedTuple):
    """One function's line of `cuobjdump -res-usage`."""

    registers: int
    stack_bytes: int
    shared_bytes: int
    local_bytes: int


class Mix(NamedTuple):
    """What the machine code of one function holds, counted statically (a loop's body once)."""

    instructions: dict[str, int]
    """By class, with `load_bytes_max` and `store_bytes_max`, as `KernelResources.instructions` asks; `bulk`: the copy engine's loads."""
    local_bytes: int
    """Bytes that the local loads and stores of one thread move, each instruction counted once: register spills, as a rule."""


def parse_usage(text: str) -> dict[str, Usage]:
    """Read the output of `cuobjdump -res-usage` by function name."""
    return {name: Usage(*map(int, numbers)) for name, *numbers in _USAGE.findall(text)}


def parse_functions(text: str) -> dict[str, str]:
    """Split the output of `cuobjdump -sass` into the listings of its functions."""
    parts = _FUNCTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def count_mix(listing: str) -> Mix:
    """Count the instructions of one function's SASS by class; padding NOPs are left out."""
    counts = dict.fromkeys((*CLASSES, "load_bytes_max", "store_bytes_max"), 0)
    local = 0
    for line in listing.splitlines():
        if not (match := _INSTRUCTION.match(line)):
            continue
        opcode, *modifiers = match[1].split(".")
        if opcode == "NOP":
            continue
        kind = classify(opcode)
        counts[kind] += 1
        if kind == "load" and opcode.startswith("U"):
            counts["bulk"] = counts.get("bulk", 0) + 1
        if opcode in ("LDL", "STL"):
            local += _width(opcode, modifiers)
        if kind in ("load", "store"):
            key = f"{kind}_bytes_max"
            counts[key] = max(counts[key], _width(opcode, modifiers))
    return Mix(counts, local)


def classify(opcode: str) -> str:
    """Name the class of a SASS opcode without its modifiers, e.g. `HGMMA` is `tensor`.

    Opcodes of the uniform datapath (`UIADD3`) count like their ordinary twins. What no class claims (moves, constant
    and special registers, shuffles, local memory) is `other`.
    """
    if _TENSOR.match(opcode):
        return "tensor"
    for name in (opcode, opcode.removeprefix("U")):
        if name in _CLASS_OF:
            return _CLASS_OF[name]
        if _FLOAT.match(name):
            return "fp"
    return "other"


def _width(opcode: str, modifiers: list[str]) -> int:
    if opcode.startswith("U"):
        return _BULK_BYTES
    return max((_ACCESS_BYTES[m] for m in modifiers if m in _ACCESS_BYTES), default=_WORD_BYTES)
