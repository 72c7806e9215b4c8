"""The spool: a folder by which agents on one machine and evaluation workers on another ask and answer.

`SpoolPool` is the agents' side, an `EvaluatorPool`; `Worker` is the other side. Between them are files alone: jobs, claims,
answers and announcements, each written whole and under a new name, so that a shared folder and a copied one both serve. Nothing
here runs a candidate (a worker has a local pool for that), and nothing is pickled. A new kind of question is a field of `Job` and
of `Answer`; a change that older workers would misread raises `VERSION`.
"""

from tools.spool.folder import Spool
from tools.spool.pool import SpoolPool
from tools.spool.worker import Summary, Worker

__all__ = ["Spool", "SpoolPool", "Summary", "Worker"]
