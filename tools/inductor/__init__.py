"""torch.compile's own kernels as a candidate: what Inductor writes for a reference, read into a file of the ordinary form.

`generate` has Inductor write for a device that need not be there, in a process for references; what comes back is text. All else here
reads that text by its syntax tree and runs none of it. What cannot be read is refused with a reason, and never guessed.
"""

from tools.inductor.module import candidate_text
from tools.inductor.records import RefusedError, Written

__all__ = ["RefusedError", "Written", "candidate_text"]
