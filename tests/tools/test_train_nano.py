"""The training of the tiny model; skipped where the extra `train` is not installed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from tokenizers.pre_tokenizers import ByteLevel  # noqa: E402

from tools import train_nano  # noqa: E402
from tools.nano_export import rounded  # noqa: E402
from tools.nano_network import Network, Shape  # noqa: E402
from tools.nano_optimiser import orthogonal  # noqa: E402
from tools.nano_problems import (  # noqa: E402
    CHECK_SEED,
    CONTROL_TOKENS,
    GROUPS,
    NEVER_SHOWN,
    TrainingProblems,
    byte_level_bpe,
)

SMALL = Shape(vocabulary=300, width=32, layers=2, heads=2, feed_forward=48)


@pytest.fixture(scope="module")
def problems() -> TrainingProblems:
    """Problems in single bytes: what is drawn does not depend on the tokeniser, only on lengths."""
    alphabet = [*CONTROL_TOKENS, *sorted(ByteLevel.alphabet())]
    return TrainingProblems(byte_level_bpe({token: number for number, token in enumerate(alphabet)}, []))


def test_a_shared_preamble_changes_no_logit() -> None:
    network = Network(SMALL, torch.Generator().manual_seed(1))
    draw = torch.Generator().manual_seed(2)
    preamble = torch.randint(300, (7,), generator=draw)
    items = [torch.randint(300, (length,), generator=draw) for length in (5, 1, 9)]
    together = network(preamble, items).split([5, 1, 9])
    for item, found in zip(items, together, strict=True):
        whole = torch.cat((preamble, item))
        alone = network(whole[:1], [whole[1:]])[6:]
        assert torch.allclose(found, alone, atol=1e-5)


def test_a_token_does_not_see_what_comes_after_it() -> None:
    network = Network(SMALL, torch.Generator().manual_seed(1))
    first, second = torch.tensor([4, 5, 6, 7]), torch.tensor([4, 5, 9, 9])
    one, two = (network(torch.tensor([1]), [item]) for item in (first, second))
    assert torch.equal(one[:2], two[:2])
    assert not torch.allclose(one[2:], two[2:])


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 12, 4), (2, 4, 12)])
def test_orthogonal_matrices_have_singular_values_near_one(shape: tuple[int, int, int]) -> None:
    found = torch.linalg.svdvals(orthogonal(torch.randn(shape, generator=torch.Generator().manual_seed(3))))
    assert found.min() > 0.3
    assert found.max() < 1.3
    assert not orthogonal(torch.zeros(shape)).any()


def test_an_asked_token_has_the_logits_it_has_among_all() -> None:
    network = Network(SMALL, torch.Generator().manual_seed(1))
    items = [torch.tensor([4, 5, 6]), torch.tensor([7, 8])]
    everything = network(torch.tensor([1, 2]), items)
    assert torch.allclose(network(torch.tensor([1, 2]), items, torch.tensor([2, 4])), everything[[2, 4]], atol=1e-6)


def test_the_same_step_draws_the_same_groups(problems: TrainingProblems) -> None:
    assert problems.group(7, 100, 0) == problems.group(7, 100, 0)
    assert problems.group(7, 100, 0) != problems.group(7, 100, 1)
    assert problems.group(8, 100, 0) != problems.group(7, 100, 0)


def test_a_round_has_every_task_as_often_as_its_share(problems: TrainingProblems) -> None:
    names = Counter(problems.group(step, 100, part).name for step in range(16) for part in range(GROUPS))
    assert names["words_collection"] == 6
    assert names["dna_translation"] == 2
    assert len(names) == 8


def test_the_fingerprint_is_that_of_the_problems(problems: TrainingProblems, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.nano_problems._LONGEST_ITEM", 10**6)  # in bytes, all texts are long
    before = problems.fingerprint(100)
    assert problems.fingerprint(100) == before
    monkeypatch.setattr("tools.nano_problems._EARLY", 0.9)
    assert problems.fingerprint(100) != before


def test_the_codons_that_are_never_shown_are_never_shown(problems: TrainingProblems) -> None:
    tokeniser = problems._tokeniser
    for level in ("trivial", "easy", "medium"):
        for item in problems._group(Random(5), "dna_translation", level, 0).items:
            question, _, answer = tokeniser.decode(item.tokens, skip_special_tokens=False).partition("<|assistant|>")
            assert NEVER_SHOWN.isdisjoint(question.replace("<|user|>", "").replace("<|end|>", "").split())
            assert answer


def test_the_problems_of_the_check_are_left_out(problems: TrainingProblems) -> None:
    from tasks.parameters import level_parameters
    from tasks.problems import draw_problem
    from tasks.registry import TASKS

    task = TASKS["maze"]
    asked = draw_problem(task, "easy", level_parameters(task, "easy"), CHECK_SEED, 0)
    assert asked.id in problems._excluded


def test_a_training_that_was_interrupted_goes_on_as_if_it_had_not_been(
    problems: TrainingProblems, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("whole", "parts")]
    for folder in folders:
        folder.mkdir()

    def advance(training: train_nano.Training, steps: int) -> None:
        gradient = torch.zeros(sum(parameter.numel() for parameter in training.network.parameters()))
        for _ in range(steps):
            group = problems.group(training.step, 10, 0)
            small = replace(group, preamble=group.preamble[:20], items=group.items[:2])
            train_nano.compute_gradient(training.network, small, gradient)
            training.advance(gradient)

    whole = train_nano.Training(folders[0], 10, "a")
    advance(whole, 4)
    first = train_nano.Training(folders[1], 10, "a")
    advance(first, 2)
    first.save()
    second = train_nano.Training(folders[1], 10, "a")
    assert second.step == 2
    advance(second, 2)
    with pytest.raises(ValueError, match="other problems"):
        train_nano.Training(folders[1], 10, "b")
    for one, other in zip(whole.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_parts_of_a_step_are_averaged_over_the_processes(problems: TrainingProblems, tmp_path: Path) -> None:
    file = tmp_path / "tokeniser.json"
    problems._tokeniser.save(str(file))
    network = Network(Shape(), torch.Generator().manual_seed(1))
    expected = torch.zeros(GROUPS, sum(parameter.numel() for parameter in network.parameters()))
    alone = [
        train_nano.compute_gradient(network, problems.group(3, 100, part), expected[part]) for part in range(GROUPS)
    ]
    found, seen = train_nano.Steps(network, problems, 100, file).compute(3)
    assert seen == alone
    assert torch.equal(found, expected.mean(0))


def test_rounded_weights_are_nine_values_of_their_neighbours() -> None:
    matrix = torch.randn(3, 64, generator=torch.Generator().manual_seed(4))
    matrix[0, :32] = 0.0
    found = rounded(matrix)
    for row, original in zip(found.reshape(-1, 32), matrix.reshape(-1, 32), strict=True):
        assert row.unique().numel() <= 9
        largest = original.abs().max()
        assert row.abs().max() == largest
        assert (row - original).abs().max() <= largest / 8 + 1e-6
