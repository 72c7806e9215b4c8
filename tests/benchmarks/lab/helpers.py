"""What the lab's helper processes do in tests."""

from __future__ import annotations

import os
import subprocess
import time
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.lab.device_lock import DeviceLock


def serve_odd(channel: Connection) -> None:
    """Say a number twice, die, hang, or tell who works here."""
    while True:
        question = channel.recv()
        if question == "die":
            os._exit(1)
        if question == "hang":
            child = subprocess.Popen(["sleep", "600"])
            channel.send(child.pid)
            time.sleep(600)
        channel.send(os.getpid() if question == "who" else question)
        channel.send(os.environ.get("LAB_TEST", ""))


def serve_turns(channel: Connection, folder: str, hold_s: float) -> None:
    """Take the lock and keep it for as many seconds as are asked for; answer when it is had, and when it is given back."""
    lock = DeviceLock(Path(folder), hold_s)
    while True:
        seconds = channel.recv()
        with lock.taken():
            channel.send(time.monotonic())
            time.sleep(seconds)
        channel.send(time.monotonic())
