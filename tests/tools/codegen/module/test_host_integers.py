"""Host code divides by plain Python."""

from types import SimpleNamespace

import triton

from tools.codegen.module.host_integers import with_plain_integers

BODY = "def host(n):\n    return triton.cdiv(n, 3), triton.next_power_of_2(n), tl.cdiv"


def test_plain_functions_give_what_tritons_give() -> None:
    """Also for nothing and for numbers beyond 32 bits."""
    found: dict[str, object] = {"tl": SimpleNamespace(cdiv=0)}
    exec(with_plain_integers(BODY), found)
    host = found["host"]
    assert callable(host)
    for n in (0, 1, 2, 3, 4, 5, 1000, 2**31 - 1, 2**31 + 1, 2**40):
        assert host(n) == (triton.cdiv(n, 3), triton.next_power_of_2(n), 0)


def test_only_what_is_used_is_written() -> None:
    """A kernel's own `tl.cdiv` stays."""
    found = with_plain_integers("x = triton.cdiv(5, 3) + tl.cdiv(5, 3)")
    assert found.endswith("x = cdiv(5, 3) + tl.cdiv(5, 3)")
    assert "next_power_of_2" not in found


def test_a_name_of_the_references_is_left_alone() -> None:
    """Its function may do something else."""
    found = with_plain_integers(BODY, "def cdiv(a, b):\n    return a // b")
    assert "triton.cdiv(n, 3), next_power_of_2(n)" in found
