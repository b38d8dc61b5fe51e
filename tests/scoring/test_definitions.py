"""docs/definitions.md is generated from the registries and current."""

import importlib.util
from pathlib import Path

import pytest

from scoring.analyses import ANALYSES
from scoring.calibrators import CALIBRATORS
from scoring.confidence import CONFIDENCE_FUNCTIONS
from scoring.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def definitions():
    """The tool as a module."""
    spec = importlib.util.spec_from_file_location("definitions_tool", ROOT / "tools" / "definitions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(definitions, capsys):
    assert definitions.main(["--check"]) == 0, capsys.readouterr().err


def test_every_entry_is_described(definitions):
    page = definitions.render()
    for registry in (CONFIDENCE_FUNCTIONS, CALIBRATORS, METRICS, ANALYSES):
        for name, entry in registry.items():
            section = page.split(f"### `{name}`\n", 1)[1].split("\n#", 1)[0]
            assert f"- formula: {entry.formula}\n" in section
            assert f"- source: {entry.source}" in section
            assert registry is CONFIDENCE_FUNCTIONS or f"- degenerate: {entry.degenerate}\n" in section


def test_an_outdated_page_is_named_and_rewritten(definitions, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(definitions, "DOCUMENT", tmp_path / "docs" / "definitions.md")
    assert definitions.main(["--check"]) == 1
    assert "run python -m tools.definitions" in capsys.readouterr().err
    assert definitions.main([]) == 0
    assert definitions.main(["--check"]) == 0
    assert definitions.main(["--chek"]) == 2


def test_every_analysis_is_a_function_with_a_docstring():
    for name, analysis in ANALYSES.items():
        assert analysis.name == name
        assert analysis.function.__doc__
        assert "SALT" in analysis.source
