"""What a process inside the sandbox can see and do."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.sandbox import landlock, seccomp, syscalls
from tools.evaluation.sandbox.isolation import Isolation, ladder
from tools.evaluation.sandbox.machine_view import hidden_trees, readable_trees
from tools.evaluation.wire.defences import Defence

ROOT = Path(__file__).parents[4]


CONFESSION = """
import json, os, pathlib, socket

def attempt(action):
    try:
        action()
        return "worked"
    except OSError as error:
        return error.errno

def names():
    for number in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink("/proc/self/fd/" + number).split(":")[0].split(" ")[0]
        except OSError:
            pass

def beside(folder):
    # what is in view that is neither a tree of the system or of Python, nor on the way to one, nor the sandbox's own
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if path in TREES:
            continue
        if any(tree.startswith(path + "/") for tree in TREES):
            yield from beside(path)
        elif path not in ("/proc", "/dev", "/scratch", "/tmp"):
            yield path

facts = {
    "environment": open("/proc/self/environ").read() + str(dict(os.environ)),
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line],
    "sockets": [attempt(lambda family=family: socket.socket(family)) for family in (socket.AF_INET, socket.AF_INET6, 40)],
    "pids": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    "descriptors": sorted(names()),
    "writes": [attempt(pathlib.Path(path).touch) for path in ("/usr/x", "/x", torch.__file__ + "x", "/etc/x")],
    "scratch": attempt(pathlib.Path(os.environ["HOME"], "x").touch),
    "seen": [path for path in SECRET if os.path.exists(path)],
    "beside": sorted(beside("/")),
    "uid": os.getuid(),
    "status": open("/proc/self/status").read(),
}
print("FACTS" + json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts(pool: LocalPool, request_for: Callable[..., EvaluationRequest], kernel: str) -> dict[str, Any]:
    """What a candidate finds out about the place it runs in, while its launcher has a key in its environment."""
    os.environ["OPENAI_API_KEY"] = "sk-test"
    secret = ["/root/.bashrc", "/etc/shadow", "/etc/passwd", *map(str, ROOT.glob("[a-z]*"))]
    told = f"SECRET = {secret}\nTREES = {readable_trees(gpu=False)}\n{CONFESSION}"
    body = textwrap.indent(told, "        ")
    source = kernel.replace("        out = torch.empty_like(x)", f"{body}\n        out = torch.empty_like(x)")
    # the static rules would refuse to run it at all
    curious = pool.weakened(frozenset({Defence.STATIC_RULES}))
    found = asyncio.run(curious.evaluate(request_for(source)))
    del os.environ["OPENAI_API_KEY"]
    assert found.verdict == "PASS", (found.notes, found.log)
    return json.loads(next(line for line in found.log.splitlines() if line.startswith("FACTS")).removeprefix("FACTS"))


def test_environment_has_no_key(facts: dict[str, Any]) -> None:
    """A key in the launcher's environment is in none of the candidate's."""
    assert "TRITON_INTERPRET" in facts["environment"]
    assert "OPENAI" not in facts["environment"]
    assert "sk-test" not in facts["environment"]


def test_no_network(facts: dict[str, Any]) -> None:
    """There is no network interface but loopback, and no socket but local ones can be made."""
    assert facts["interfaces"] == ["lo"]
    assert facts["sockets"] == [errno.EAFNOSUPPORT] * 3


def test_processes_outside_are_invisible(facts: dict[str, Any]) -> None:
    """The candidate is the only process it can see."""
    assert facts["pids"] == [1]


def test_only_descriptors_of_its_own_are_open(facts: dict[str, Any]) -> None:
    """Besides the log and /dev/null there are its one socket and the memory of the exchange: nothing of the zygote's."""
    found = facts["descriptors"]

    assert set(found) <= {"/null", "/dev/null", "pipe", "socket", "/memfd"}
    assert found.count("socket") == 1
    # exchange and parameters, each mapped through a descriptor of its own
    assert found.count("/memfd") <= 4


def test_only_scratch_can_be_written(facts: dict[str, Any]) -> None:
    """Nothing but scratch can be written; accounts and the checkout are not in view, and of homes no more than the way to Python."""
    assert "worked" not in facts["writes"]
    assert facts["scratch"] == "worked"
    assert facts["seen"] == []
    assert facts["beside"] == []


def test_a_project_below_a_folder_that_is_shown_is_hidden() -> None:
    """Where a clone or an installation lies below a system folder or Python's, it is left out; elsewhere there is nothing to leave out."""
    assert hidden_trees((str(ROOT.parent),)) == (str(ROOT),)
    assert hidden_trees((str(ROOT / "tools"), "/nowhere")) == ()


def test_no_privilege_is_left(facts: dict[str, Any]) -> None:
    """The candidate has no capability, no way to new ones, a filter, and a user id of its own."""
    assert facts["uid"] != 0
    assert "CapEff:\t0000000000000000" in facts["status"]
    assert "CapPrm:\t0000000000000000" in facts["status"]
    assert "NoNewPrivs:\t1" in facts["status"]
    assert "Seccomp:\t2" in facts["status"]


def test_filter_refuses_dangerous_calls() -> None:
    """In a filtered process ptrace and unshare are refused while threads and programs still start."""
    code = """
import ctypes, subprocess, threading
from tools.evaluation.sandbox import seccomp, syscalls
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install()
libc = ctypes.CDLL(None, use_errno=True)
for name, call in (("ptrace", lambda: libc.ptrace(0, 0, 0, 0)), ("unshare", lambda: libc.unshare(0x10000000))):
    print(name, call(), ctypes.get_errno())
thread = threading.Thread(target=print, args=("thread",)); thread.start(); thread.join()
print(subprocess.run(["true"]).returncode)
"""
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")

    assert printed[0] == "ptrace -1 1"
    assert printed[1] == "unshare -1 1"
    assert "thread" in printed
    assert printed[-2] == "0"


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filter_program_is_well_formed(machine: str) -> None:
    """Every jump of the filter lands inside it, for both architectures, and it ends in a return."""
    code = seccomp.program(machine)

    assert len(code) < 256
    assert code[-1][0] == 0x06
    assert all(place + 1 + max(yes, no) < len(code) for place, (kind, yes, no, _) in enumerate(code) if kind != 0x06)


@pytest.mark.skipif(landlock.version() == 0, reason="this kernel has no Landlock")
def test_landlock_leaves_only_scratch_writable(tmp_path: Path) -> None:
    """A process under Landlock reads everywhere and writes only where it may."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    code = f"""
from pathlib import Path
from tools.evaluation.sandbox import landlock, syscalls
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
landlock.restrict((Path("/"),), (Path("{inside}"),))
Path("{inside}/a").write_text("a")
try:
    Path("{outside}/a").write_text("a")
except PermissionError:
    print("refused", Path("{inside}/a").read_text())
"""
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert printed == "refused a\n"


def test_strongest_walls_come_first() -> None:
    """The first walls tried have everything, the last only crash isolation, and they say so."""
    steps = ladder(root=True, gpu=False)

    assert steps[0] == Isolation(landlock=True)
    assert "private root" in steps[0].sentence
    assert steps[-1].sentence.startswith("Crash isolation only")
    assert not any(step.landlock or step.files == "landlock" for step in ladder(root=True, gpu=True))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
@pytest.mark.slow
def test_unprivileged_launcher_isolates_too(request_for: Callable[..., EvaluationRequest], kernel: str) -> None:
    """A launcher that is not root still judges a candidate, with the walls that its user may build."""
    script = ROOT / "tests" / "tools" / "evaluation" / "evaluate_once.py"
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    interpreters = [
        path for path in (os.path.realpath(sys.executable), shutil.which(f"python{version}", path="/usr/bin:/usr/local/bin")) if path
    ]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": ":".join(path for path in sys.path if "site-packages" in path)}
    usable = [path for path in interpreters if _runs(nobody, path, environment)]
    if not usable:
        pytest.skip("no interpreter that another user may run, with its packages")
    command = [*nobody, usable[0], "-B", str(script)]
    given = request_for(kernel).model_dump_json()
    done = subprocess.run(command, input=given, cwd="/tmp", capture_output=True, text=True, timeout=200, check=False, env=environment)

    assert "PASS" in done.stdout, done.stderr[-2000:]
    assert "seccomp" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="the sandbox's user is the launcher's own without root")
@pytest.mark.slow
def test_launcher_that_keeps_its_files_to_itself_isolates_too(request_for: Callable[..., EvaluationRequest], kernel: str) -> None:
    """A launcher whose new folders nobody else may enter (umask 077) judges a candidate all the same, with a private root."""
    script = ROOT / "tests" / "tools" / "evaluation" / "evaluate_once.py"
    command = [sys.executable, "-B", str(script)]
    given = request_for(kernel).model_dump_json()
    done = subprocess.run(command, input=given, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False, umask=0o077)

    assert "PASS" in done.stdout, done.stderr[-2000:]
    assert "private root" in done.stdout


@pytest.mark.slow
def test_everything_dies_with_the_supervisor(request_for: Callable[..., EvaluationRequest], kernel: str) -> None:
    """When the process that owns the pool is killed, its zygotes and sandboxes die too."""
    script = ROOT / "tests" / "tools" / "evaluation" / "evaluate_once.py"
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-B", str(script), "hang"], cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin as given:
        given.write(request_for(kernel).model_dump_json())
    assert process.stdout.readline() == "started\n"
    above = psutil.Process(process.pid)
    # the first process, two that are warm, two zygotes, and the phase's two
    wait_until(lambda: len(above.children(recursive=True)) >= 7)
    family = above.children(recursive=True)
    process.kill()
    process.wait()
    process.stdout.close()

    wait_until(lambda: not any(_alive(one.pid) for one in family))


def _runs(launcher: list[str], interpreter: str, environment: dict[str, str]) -> bool:
    """Whether another user may start the interpreter, and from within once more with its packages."""
    again = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import numpy, pytest'], check=True)"
    done = subprocess.run([*launcher, interpreter, "-c", again], capture_output=True, check=False, cwd="/", env=environment)
    return done.returncode == 0


def wait_until(condition: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIG_DFL)
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_syscall_errors_name_the_call() -> None:
    """A refused system call raises OSError with its number."""
    with pytest.raises(OSError, match="syscall 445"):
        syscalls.syscall(445)
