"""The audit of linear encoders equals closed forms; mistakes are sentences."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import invclr_jax as ic
from invclr_jax.evaluation import passes
from invclr_jax.evaluation.audit.report import beside
from invclr_jax.evaluation.audit.settings import AuditSettings
from invclr_jax.transforms.image import ImageTransform
from tests.evaluation.audit import cases
from tests.own import pictures

SETTINGS = AuditSettings(
    num_images=1200, varied_images=600, num_draws=6, grid=3, shifts=1, resamples=200
)


@pytest.fixture(scope="module")
def images():
    return cases.pictures(1200)


@pytest.fixture(scope="module")
def turned(images):
    return ic.audit(cases.circle, images, cases.Turn(), settings=SETTINGS)


def test_ratio_is_the_closed_form(turned):
    """h = (cos, sin)(φ + alpha), alpha uniform in ±w: V_cond = 1 - (sin w / w)², V_total = 1."""
    expected = 1 - (np.sin(cases.WIDTH) / cases.WIDTH) ** 2
    metrics, intervals = turned.metrics, turned.intervals
    for name, value in (("v_cond", expected), ("ratio", expected), ("v_total", 1)):
        assert metrics[f"{name}/turn"] == pytest.approx(value, abs=0.01)
    low, high = intervals["ratio/turn"]
    assert low < expected < high
    assert high - low < 0.03
    assert metrics["ratio/shade"] == pytest.approx(0, abs=1e-9)
    # The whole transformation turns and shades: the circle only sees the turn.
    assert metrics["ratio/transform"] == pytest.approx(expected, abs=0.02)


def test_all_devices_encode_and_the_report_is_that_of_one(images, monkeypatch):
    settings = dataclasses.replace(SETTINGS, num_images=120, varied_images=60, batch_size=20)
    used, original = set(), passes.on_mesh

    def watched(*arguments, mesh, **options):
        used.add(mesh.size)
        return original(*arguments, mesh=mesh, **options)

    monkeypatch.setattr(passes, "on_mesh", watched)
    several = ic.audit(cases.circle, images, cases.Turn(), settings=settings)
    assert used == {3, 6}  # a batch on each
    monkeypatch.setattr(jax, "local_device_count", lambda: 1)
    one = ic.audit(cases.circle, images, cases.Turn(), settings=settings)
    assert several.metrics == one.metrics


def test_canonical_correlation_is_the_closed_form(turned):
    """Cov(h, h') over Cov(h) is (sin w / w)² in both directions of the circle."""
    expected = (np.sin(cases.WIDTH) / cases.WIDTH) ** 2
    assert turned.metrics["canonical_correlation/turn"] == pytest.approx(expected, abs=0.01)
    assert turned.metrics["canonical_correlation/shade"] == pytest.approx(1, abs=1e-6)
    assert turned.metrics["between/canonical_correlation/turn"] == pytest.approx(0, abs=0.06)


def test_more_features_than_pictures_do_not_count_as_nuisance(images):
    """60 pictures fill 60 of 300 directions: an invariant encoder is invariant all the same."""
    matrix = np.random.default_rng(0).normal(size=(4, 300)).astype(np.float32)
    settings = dataclasses.replace(SETTINGS, num_images=120, varied_images=60)

    def many(pictures):
        flat = cases.rest(pictures)
        return jnp.cos(10 * flat @ matrix) + 0.01 * cases.circle(pictures)[:, :1]

    report = ic.audit(many, images, cases.Turn(), settings=settings)
    assert report.metrics["canonical_correlation/shade"] == pytest.approx(1, abs=1e-4)
    assert 0.9 < report.metrics["canonical_correlation/turn"] < 1
    assert abs(report.metrics["between/canonical_correlation/turn"]) < 0.3


def test_cosines_are_the_closed_form(turned):
    """E cos(alpha) = sin w / w; between pictures 0."""
    expected = np.sin(cases.WIDTH) / cases.WIDTH
    for measure in ("cosine", "whitened_cosine"):
        assert turned.metrics[f"{measure}/turn"] == pytest.approx(expected, abs=0.02)
        assert turned.metrics[f"between/{measure}/turn"] == pytest.approx(0, abs=0.06)
        assert turned.metrics[f"{measure}/shade"] == pytest.approx(1, abs=1e-5)
    along = {name: v for name, v in turned.metrics.items() if name.startswith("along/turn=")}
    assert len(along) == SETTINGS.grid
    for name, value in along.items():
        angle = float(name.split("=")[1].split("/")[0])
        assert value == pytest.approx(np.cos(angle), abs=0.02)


def test_lie_derivative_is_the_closed_form(turned, images):
    """|dh/dalpha| = 1 on the circle, s.d. of alpha = w/√3; of two features each has half."""
    deviation = cases.WIDTH / np.sqrt(3)
    metrics = turned.metrics
    assert metrics["lie/turn/mean_square"] == pytest.approx(deviation**2 / 2, rel=1e-5)
    assert metrics["lie/turn/mean_absolute"] == pytest.approx(deviation * 2 / np.pi, rel=0.02)
    assert metrics["lie/turn/relative"] == pytest.approx(deviation**2, rel=0.01)
    assert metrics["lie/shade/mean_square"] == 0


def test_lie_derivative_of_a_plain_function_is_a_finite_difference(turned, images):
    def plain(pictures):
        return np.asarray(cases.circle(np.asarray(pictures)))

    report = ic.audit(plain, images, cases.Turn(), settings=SETTINGS)
    for name, value in turned.metrics.items():
        assert report.metrics[name] == pytest.approx(value, rel=2e-3, abs=1e-4), name


def test_r2_of_alpha_is_the_closed_form(images):
    """z = 2(s + alpha/10), s uniform in ±0.1, alpha in ±1: R² = Var alpha/100 / (Var s + that)."""
    report = ic.audit(cases.shade, images, cases.Turn(), settings=SETTINGS)
    metrics = report.metrics
    assert metrics["alpha/linear/r2/shade"] == pytest.approx(0.5, abs=0.06)
    low, high = report.intervals["alpha/linear/r2/shade"]
    assert low < 0.5 < high
    assert metrics["alpha/linear/r2/turn"] == pytest.approx(0, abs=0.01)
    # The pair differs by alpha alone: z - z' = 2 (alpha - alpha')/10.
    assert metrics["difference/linear/r2/shade"] == pytest.approx(1, abs=1e-4)
    assert metrics["difference/mlp/r2/shade"] > 0.95
    assert metrics["alpha/mlp/r2/shade"] == pytest.approx(0.5, abs=0.08)


def test_what_a_line_cannot_read_a_network_can(images):
    """z = alpha² up to the circle's symmetry: cos and sin of 2(φ + alpha) with φ known."""

    def squared(pictures):
        flat = pictures.reshape(len(pictures), -1)
        gap = 10 * (flat[:, 4] - flat[:, 9])  # alpha plus noise of the two pixels
        return jnp.stack([jnp.abs(gap), jnp.sign(gap) * (flat[:, 9] + 1), flat[:, 10]], axis=1)

    metrics = ic.audit(squared, images, cases.Turn(), settings=SETTINGS).metrics
    assert metrics["alpha/mlp/r2/shade"] > metrics["alpha/linear/r2/shade"] + 0.02


def test_an_invariant_encoder_is_found_to_be_one(images):
    metrics = ic.audit(cases.rest, images, cases.Turn(), settings=SETTINGS).metrics
    for part in ("transform", "turn", "shade"):
        assert metrics[f"ratio/{part}"] == pytest.approx(0, abs=1e-9)
        assert metrics[f"canonical_correlation/{part}"] == pytest.approx(1, abs=1e-6)
        assert metrics[f"retrieval/mrr/{part}"] == 1
        assert metrics[f"retrieval/hits_at_1/{part}"] == 1
    assert metrics["between/retrieval/hits_at_1/turn"] == pytest.approx(1 / 1200)
    assert metrics["shift/pixels=0/consistency"] == 1
    assert metrics["shift/pixels=1/consistency"] < 1


def test_every_similarity_has_its_between(turned):
    words = ("cosine", "canonical_correlation", "retrieval", "consistency")
    similar = [n for n in turned.metrics if any(w in n for w in words) and "between/" not in n]
    assert similar
    for name in similar:
        assert f"between/{name}" in turned.metrics
    assert all(np.isfinite(value) for value in turned.metrics.values())
    for name, (low, high) in turned.intervals.items():
        assert low <= high, name


def test_the_report_is_a_table_a_file_and_a_page(turned, tmp_path):
    text = str(turned)
    assert {"turn", "shade", "crop", "flip", "transform"} <= set(text.split())
    turned.to_json(tmp_path / "a.json")
    stored = json.loads((tmp_path / "a.json").read_text())
    assert stored["metrics"] == turned.metrics
    turned.to_html(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert page.count("<img") == 2 + 2 + 1  # two strips, two curves, shifts
    assert "http" not in page
    assert f"{turned.metrics['ratio/turn']:.3f}" in beside([turned, turned])


def test_labels_bring_a_probe_and_corruptions():
    dataset = pictures(240)
    transform = ImageTransform(8, dataset.mean, dataset.std)
    settings = AuditSettings(
        num_images=200, varied_images=60, num_draws=2, grid=2, shifts=2, severities=(1,)
    )
    report = ic.audit(
        lambda x: x.mean((1, 2)),
        dataset.train.images,
        transform,
        dataset.train.labels,
        settings=settings,
    )
    assert report.metrics["probe/clean/accuracy"] == 100  # red tells the class
    assert report.metrics["shift/pixels=2/consistency"] > 0.9
    assert 50 < report.metrics["corruption/mean/accuracy"] <= 100
    # Mirrored pictures have the same mean colour.
    assert report.metrics["ratio/flip"] == pytest.approx(0, abs=1e-9)
    # Brightness scales the mean colour, which unit features do not see; hue turns it.
    assert report.metrics["ratio/hue"] > 2 * report.metrics["ratio/brightness"]


@pytest.mark.parametrize(
    ("encode", "change", "sentence"),
    [
        (lambda x: cases.circle(x) * np.nan, None, "encode returned NaN"),
        (lambda x: cases.circle(x)[:, 0], None, "encode returned shape"),
        (lambda x: cases.circle(x)[1:], None, "encode returned 3 rows for 4 images"),
        (lambda x: cases.circle(x) - cases.circle(x).mean(0, keepdims=True), None, "batches of 2"),
        (lambda x: jnp.ones((len(x), 3)), None, "all features are equal"),
        ("resnet", None, "encode is a str"),
        (cases.circle, lambda x: x * 2 - 1, r"outside \[0, 1\]"),
        (cases.circle, lambda x: x[0], "expected .n, height, width, channels"),
        (cases.circle, lambda x: x[:5], "give at least 20"),
        (cases.circle, lambda x: x.astype(np.int64), "images are int64"),
        (cases.circle, lambda x: x / 0 * 0, "NaN or infinite pixels"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_mistakes_are_sentences(encode, change, sentence, images, no_shape_checks):
    given = images if change is None else change(images)
    with pytest.raises(ValueError, match=sentence):
        ic.audit(encode, given, cases.Turn(), settings=SETTINGS)


def test_labels_of_another_length_are_refused(images, no_shape_checks):
    with pytest.raises(ValueError, match="one class for each of the 1200 images"):
        ic.audit(cases.circle, images, cases.Turn(), np.zeros(3, int), settings=SETTINGS)
