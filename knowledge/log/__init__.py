"""The event log, which is the source of truth, and what is known by it.

`event_log.py` appends and reads, `file.py` is its file, `migrate.py` reads older ones; `fold.py` makes entries (`entry.py`) of events.
Never write to the log but through `EventLog.writing`; never change or delete an event.
"""
