"""Runs by name agree with the configurations, and refuse nonsense."""

import pytest

from experiments import batch
from experiments.figures import EXPERIMENTS
from experiments.plan import describe, estimate, forward_flops, penalty_ratio
from experiments.records import Records
from experiments.runs import BASES, COMPARED, SCALES, WORDS, Run, changes, num_steps, parse
from invclr_jax import config as configuration
from invclr_jax.objectives.pairs import PAIR_LOSSES
from tests.experiments.synthetic import record

MAY_DIFFER = ("seed", "penalty", "transform.normalise", "eval", "data.path")
DRAWN = ("spirograph", "spirograph_32")


def test_names_say_what_they_change():
    assert changes("none") == {"penalty.weight": 0.0}
    assert changes("row-finite-relative-0.1") == {
        "transform.normalise": "row",
        "penalty.estimator": "finite",
        "penalty.feature": "relative",
        "penalty.weight": 0.1,
    }
    assert changes("finite-canonical-views-ridge0.1-batch128-1") == {
        "penalty.estimator": "finite",
        "penalty.feature": "canonical",
        "penalty.pair": "views",
        "penalty.ridge": 0.1,
        "batch_size": 128,
        "penalty.weight": 1.0,
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "part ''"),
        ("unit", "no lambda"),
        ("unit-centred-0.1", "twice"),
        ("units-0.1", "'units'"),
        ("none-0.1", "twice"),
        ("batchx-none", "'batchx'"),
        ("ridge-0.1", "'ridge'"),
    ],
)
def test_nonsense_names_are_refused(name, words):
    with pytest.raises(ValueError, match=words):
        Run("cpu", "spirograph", name)


def test_unknown_data_and_experiments_are_refused():
    with pytest.raises(ValueError, match="no data set 'mnist'"):
        parse("mnist/none", "cpu")
    with pytest.raises(ValueError, match="no experiment 'fig9'"):
        batch.experiment_names("fig2,fig9")


@pytest.mark.parametrize("scale", SCALES)
def test_runs_differ_from_their_configuration_only_in_the_penalty(scale):
    for dataset, base in BASES[scale].items():
        plain = configuration.flatten(configuration.resolve(configuration.load(base)))
        run = Run(scale, dataset, "row-finite-relative-0.3").config(seed=4, data_path="x")
        for key, value in configuration.flatten(run).items():
            if not key.startswith(MAY_DIFFER):
                assert value == plain[key], key
        assert run.seed == 4
        assert run.penalty.weight == 0.3
        assert run.data.path == ("x" if dataset not in DRAWN else None)


@pytest.mark.parametrize("scale", SCALES)
def test_every_run_of_every_experiment_has_a_configuration(scale):
    for name in EXPERIMENTS:
        for run in batch.wanted_runs([name], [], scale):
            config = run.config(seed=0)
            # Ten measurements on the way, the last at the end or close to it.
            assert 9 <= num_steps(config) // config.eval.every_steps <= 10


@pytest.mark.parametrize("scale", SCALES)
def test_the_papers_comparison_comes_first(scale):
    for dataset, names in COMPARED[scale].items():
        weight = {"spirograph": 0.01}.get(dataset, 0.1)
        assert names[:2] == ("none", f"unit-{weight:g}")


def test_paper_scale_has_the_papers_schedule():
    steps = {data: num_steps(Run("paper", data, "none").config(0)) for data in BASES["paper"]}
    assert steps["spirograph"] == 50 * (100_000 // 512)
    assert steps["cifar10"] == steps["cifar100"] == 1000 * (50_000 // 512)
    assert steps["moco_cifar100"] == 200 * (50_000 // 512)


def test_shared_runs_are_wanted_once():
    wanted = batch.wanted_runs(["fig2", "table1", "fig5"], ["cifar10/none"], "cpu")
    assert len(wanted) == len(set(wanted))
    assert wanted[0] == Run("cpu", "cifar10", "none")


def test_the_plan_scales_with_flops_and_the_penalty():
    nothing = Records([], "paper")
    plain = estimate(Run("paper", "cifar10", "none"), nothing)
    penalised = estimate(Run("paper", "cifar10", "unit-0.1"), nothing)
    assert plain.steps == 97_000
    assert plain.images == 2 * 97_000 * 512
    small, large = (Run("paper", d, "none").config(0) for d in ("moco_cifar100", "cifar10"))
    # ResNet18 and ResNet50 multiply and add 0.56 and 1.3 billion times a 32×32 picture, a little
    # less where padding is not counted.
    assert 0.9e9 < forward_flops(small) < 1.15e9
    assert 2.2e9 < forward_flops(large) < 2.7e9
    ratio = forward_flops(large) / forward_flops(small)
    assert plain.seconds == pytest.approx(1000 * 11.9 * ratio)
    assert penalised.seconds == pytest.approx(2.2 * plain.seconds)
    text = describe([plain.run, penalised.run], nothing, seeds=3, devices=8)
    assert "2 runs × 3 seeds" in text
    assert "A100" in text


def test_the_plan_prefers_measured_times():
    plain, other = Run("cpu", "spirograph", "none"), Run("cpu", "spirograph", "unit-0.01")
    made = record(plain, 0) | {"seconds": {"step": 0.5}}
    penalised = record(other, 0) | {"seconds": {"step": 1.5}}
    found = Records([made, penalised], "cpu")
    assert penalty_ratio(Run("cpu", "spirograph", "centred-0.1").config(0), found) == 3
    sweep = estimate(Run("cpu", "spirograph", "centred-0.1"), found)
    assert sweep.seconds == pytest.approx(1.5 * sweep.steps)


def test_every_word_of_a_name_is_known_to_the_configuration():
    for word, (key, value) in WORDS.items():
        name = word if word == "none" else f"{word}-0.1"
        name = f"finite-{name}" if word in PAIR_LOSSES else name
        flat = configuration.flatten(Run("cpu", "spirograph", name).config(seed=0))
        assert flat[key] == value, word
