"""What a compiled program's operations are, whatever XLA calls them."""

import jax
import jax.numpy as jnp
import pytest

from benchmarks import profile
from invclr_jax.models.conv import convolve


def test_seconds_go_to_the_kind_and_part_they_belong_to():
    program = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[2]{0})->f32[2]}

%fused_computation (param_0: f32[2,2]) -> f32[2] {
  %param_0 = f32[2,2]{1,0} parameter(0)
  %dot.1 = f32[2,2]{1,0} dot(%param_0, %param_0), metadata={op_name="f/layer2_block0/conv1/dot"}
  ROOT %reduce.3 = f32[2]{0} reduce(%dot.1), to_apply=%add
}

ENTRY %main.5 (x: f32[2]) -> f32[2] {
  %x = f32[2]{0} parameter(0)
  %ynn_fusion.2 = (f32[2]{0}, f32[]) fusion(%x), kind=kCustom, calls=%fused_computation
  %convolution.7 = f32[2]{0} convolution(%x, %x), metadata={op_name="jit(f)/stem_conv/conv"}
  %copy_fusion = f32[2]{0} transpose(%x), metadata={op_name="jit(f)/dense1/transpose"}
  %while.1 = f32[2]{0} while(%x), condition=%c, body=%b
  ROOT %wrapped = f32[2]{0} add(%x, %x), metadata={op_name="jit(f)/add"}
}
"""
    names = ("ynn_fusion.2", "convolution.7", "while.1", "wrapped", "unknown", "copy_fusion")
    seconds = {name: 2.0**power for power, name in enumerate(names)}
    assert profile.classify(seconds, program) == {
        ("stage 2", "matrix product"): 1.0,
        ("stem", "convolution"): 2.0,
        (profile.REST, profile.OTHER): 8.0,
        ("head", profile.MOVING): 32.0,
    }


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x: jax.lax.conv(x, x, (1, 1), "SAME"), "convolution"),
        (lambda x: convolve(jnp.tile(x, 2), jnp.ones((3, 3, 16, 16))), "convolution"),
        (lambda x: x[0, 0] @ x[0, 0], "matrix product"),
        (lambda x: x.sum(), "sum over pixels or batch"),
        (jnp.sin, profile.OTHER),
    ],
)
def test_todays_programs_are_understood(function, kind):
    program = jax.jit(function).lower(jnp.ones((8, 8, 8, 8))).compile().as_text()
    entry = program[program.index("ENTRY") :]
    names = [name for lines in profile.parse(entry).values() for name in lines]
    kinds = {kind for _, kind in profile.classify(dict.fromkeys(names, 1.0), program)}
    assert kind in kinds
    assert kinds <= {kind, profile.MOVING, profile.OTHER}
