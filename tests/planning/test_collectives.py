"""Messages are read from compiled programs: from text by hand, and from a program of our own."""

import jax
import jax.numpy as jnp
import pytest

from invclr_jax.planning.collectives import Collective, find, sent

TPU = """
%async (p: f32[4,128]) -> f32[16,128] {
  %all-gather.1 = f32[16,128]{1,0:T(8,128)} all-gather(%p), channel_id=1, frontend_attributes={chain_id="0"}
}
%continued (p: f32[4,128]) -> f32[16,128] {
  %all-gather.2 = f32[16,128]{1,0:T(8,128)S(1)} all-gather(%p), channel_id=1, frontend_attributes={chain_id="0"}
}
ENTRY %main {
  %psum.1 = f32[1,1,64]{2,1,0:T(1,128)} all-reduce(%x), channel_id=1, to_apply=%add
  %all-reduce.2 = (bf16[8]{0}, f32[]{:T(128)}) all-reduce(%y, %z), channel_id=1, to_apply=%add
  ROOT %all-gather.3 = u8[10]{0} all-gather(%w), channel_id=1
  %not-one = f32[5]{0} add(%all-reduce.2, %all-gather.3)
  %ar = f32[6]{0} all-reduce-start(%x), to_apply=%add
  %done = f32[6]{0} all-reduce-done(%ar)
  %ag = (f32[2]{0}, f32[8]{0}) all-gather-start(%x), dimensions={0}
}
"""  # noqa: E501


def test_kinds_counts_and_bytes():
    reduced = 4 * 64 + 2 * 8 + 4 + 4 * 6
    gathered = 4 * 16 * 128 + 10 + 4 * 8
    assert find(TPU) == (
        Collective("all-gather", 3, gathered),
        Collective("all-reduce", 3, reduced),
    )
    assert find("ENTRY %main { %a = f32[2] add(%b, %c) }") == ()


def test_of_a_compiled_program():
    def step(x):
        return jax.lax.psum(x.sum(0), "d"), jax.lax.all_gather(x, "d")

    program = jax.pmap(step, axis_name="d", devices=jax.devices()[:4])
    text = program.lower(jax.ShapeDtypeStruct((4, 3, 5), jnp.float32)).compile().as_text()
    found = {collective.kind: collective for collective in find(text)}
    assert found["all-reduce"] == Collective("all-reduce", 1, 4 * 5)
    assert found["all-gather"] == Collective("all-gather", 1, 4 * 4 * 3 * 5)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("all-reduce", 2 * 75.0),  # 100 bytes in four parts: three to scatter, three to gather
        ("all-gather", 75.0),
        ("reduce-scatter", 300.0),  # 100 bytes are left of 400
        ("collective-permute", 100.0),
    ],
)
def test_what_a_device_sends_in_a_ring(kind, expected):
    assert sent(Collective(kind, 1, 100), devices=4) == expected


def test_one_device_sends_nothing():
    assert sent(Collective("all-reduce", 1, 100), devices=1) == 0
