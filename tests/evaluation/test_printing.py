"""What the evaluate command prints, and how it ends."""

import pytest

from invclr_jax.evaluation.outcomes import Outcome
from invclr_jax.evaluation.printing import finish, results_folder, show

MEASURED = Outcome(
    "measured",
    {
        **{f"probe/lbfgs/M={m}/accuracy": 50.0 for m in (1, 2)},
        **{f"probe/lbfgs/M={m}/iterations": 1000.0 * (m - 1) for m in (1, 2)},
        **{f"probe/lbfgs/M={m}/grad_norm": 1e-6 for m in (1, 2)},
    },
)
FAILED = Outcome("failed", reason="no such thing", error=ValueError("no such thing"))
SKIPPED = Outcome("not applicable", reason="this data has no classes")


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ({"average": MEASURED, "knn": SKIPPED}, 0),
        ({"average": MEASURED, "knn": FAILED, "ensemble": SKIPPED}, 1),
        ({"knn": SKIPPED}, 0),
    ],
)
def test_only_a_failure_ends_in_code_1(outcomes, code, tmp_path, capsys):
    assert finish(outcomes, tmp_path / "results.json") == code
    assert ("1 of 3 protocols failed: knn" in capsys.readouterr().err) == bool(code)
    assert (tmp_path / "results.png").exists() == ("average" in outcomes)


def test_a_table_and_a_warning_where_a_fit_did_not_converge(capsys):
    show("average", MEASURED, 100)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "average"
    assert [line.split() for line in lines[2:5]] == [
        ["accuracy"],
        ["M=1", "50.00", "±", "5.00"],
        ["M=2", "50.00", "±", "5.00"],
    ]
    (warning,) = lines[5:]
    assert warning.startswith("  warning: probe/lbfgs/M=2 did not converge: gradient norm 1e-06")


def test_sentences_in_place_of_a_table(capsys):
    show("knn", SKIPPED, 100)
    show("alpha", FAILED, 100)
    show("average", Outcome("from the file", {"a/b": 1.0}), 100)
    said = capsys.readouterr().out
    assert "knn\n  not applicable: this data has no classes" in said
    assert "alpha\n  failed: no such thing" in said
    assert "average (from the file)\n" in said


def test_results_of_a_shipped_encoder_do_not_hide_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert results_folder("spirograph-cpu").parts == ("results", "spirograph-cpu")
    (tmp_path / "run").mkdir()
    assert results_folder("run").parts == ("run", "results")
