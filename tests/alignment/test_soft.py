from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import evenmatch as em
from evenmatch.alignment import differentiable
from evenmatch.alignment.differentiable import (
    FixedAlignment,
    StraightThrough,
    gumbel_noise,
    soft_choice,
    soft_logits,
)
from evenmatch.alignment.lisa import Recursive, RowMask, refine_cells
from evenmatch.errors import InputError
from evenmatch.scoring.reducers import precision_recall
from evenmatch.types import Array

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

BASES = (Recursive(), Recursive(iterations=7))
ALL = pytest.mark.parametrize("base", BASES, ids=em.spec)
SIZES = [(4, 4), (3, 5), (6, 2), (1, 5), (4, 1), (1, 1), (6, 6)]


def stack(low: float = -0.2, seed: int = 0) -> tuple[list[Array], Any, Any]:
    """Ragged matrices: one by one, and as a padded tensor with what is present of it."""
    random = np.random.default_rng(seed)
    single = [random.uniform(low, 1, size) for size in SIZES]
    padded = torch.full((len(SIZES), 6, 6), 0.7, dtype=torch.float64)
    present = torch.zeros((len(SIZES), 6, 6), dtype=torch.bool)
    for k, (m, n) in enumerate(SIZES):
        padded[k, :m, :n] = torch.tensor(single[k])
        present[k, :m, :n] = True
    return single, padded, present


def everything(similarity: Any) -> Any:
    return torch.ones_like(similarity, dtype=torch.bool)


@ALL
def test_forward_is_what_the_solver_gives(base: Recursive) -> None:
    single, padded, present = stack()
    found = StraightThrough(base)(padded, present)
    for k, (m, n) in enumerate(SIZES):
        wanted = em.solve(single[k], base)
        assert found.rows[k, :m, :n].numpy() == pytest.approx(wanted.rows, abs=1e-12)
        assert found.cols[k, :m, :n].numpy() == pytest.approx(wanted.cols, abs=1e-12)
    assert not found.rows[~present].any()
    assert not found.cols[~present].any()


@ALL
def test_a_stack_of_sentences_is_solved_as_the_solver_solves_it(base: Recursive) -> None:
    similarity = torch.rand(40, 23, 31, dtype=torch.float64, generator=torch.manual_seed(3))
    found = StraightThrough(base)(similarity, everything(similarity))
    for k, wanted in enumerate(em.solve_batch([s.numpy() for s in similarity], base)):
        assert found.rows[k].numpy() == pytest.approx(wanted.rows, abs=1e-12)


@ALL
def test_backward_is_the_gradient_of_the_soft_choice(base: Recursive) -> None:
    """d(plan * s) with a hard plan: the plan for s, and the soft choice's gradient for the plan."""
    _, padded, present = stack()
    weight = torch.rand(padded.shape, dtype=torch.float64, generator=torch.manual_seed(0))
    gradients = []
    for straight in (True, False):
        s = padded.clone().requires_grad_()
        if straight:
            ((StraightThrough(base, 0.3)(s, present).cols * s) * weight).sum().backward()
        else:
            hard = StraightThrough(base, 0.3)(padded, present).cols
            soft, _ = soft_choice(soft_logits(s, present, base, 0.3), present)
            ((hard * s + soft * s.detach()) * weight).sum().backward()
        gradients.append(s.grad)
    assert torch.allclose(gradients[0], gradients[1], atol=1e-12)
    assert gradients[0].abs().sum() > 0


@ALL
def test_the_soft_choice_has_the_gradient_it_claims(base: Recursive) -> None:
    padded, present = (a[:3, :4, :4] for a in stack(seed=2)[1:])

    def soft(s: Any) -> Any:
        return soft_choice(soft_logits(s, present, base, 0.5), present)[0]

    assert torch.autograd.gradcheck(soft, padded.clone().requires_grad_(), eps=1e-7, atol=1e-4)


@ALL
def test_the_refined_cells_have_the_gradient_they_claim(base: Recursive) -> None:
    padded, present = (a[:3, :4, :4] for a in stack(seed=2)[1:])

    def logits(s: Any) -> Any:
        return soft_logits(s, present, base, 0.5)

    assert torch.autograd.gradcheck(logits, padded.clone().requires_grad_(), eps=1e-7, atol=1e-4)


@ALL
def test_no_gradient_comes_out_of_absent_cells(base: Recursive) -> None:
    _, padded, present = stack()
    s = padded.clone().requires_grad_()
    found = StraightThrough(base)(s, present)
    ((found.rows + found.cols) * s).sum().backward()
    assert torch.isfinite(s.grad).all()
    assert not s.grad[~present].any()


@ALL
def test_equal_similarities_send_back_no_huge_gradients(base: Recursive) -> None:
    s = torch.full((1, 4, 4), 0.5, dtype=torch.float64, requires_grad=True)
    found = StraightThrough(base)(s, everything(s))
    (found.rows * s).sum().backward()
    assert s.grad.abs().max() < 1e4


@ALL
def test_a_matrix_in_a_stack_is_as_alone(base: Recursive) -> None:
    single, padded, present = stack()
    for part in (StraightThrough(base), StraightThrough(base, seed=5)):
        together = part(padded, present)
        for k, (m, n) in enumerate(SIZES):
            one = torch.tensor(single[k])[None]
            alone = part(one, everything(one))
            assert torch.allclose(together.rows[k, :m, :n], alone.rows[0], atol=1e-6)


def test_any_number_of_dimensions_may_come_first() -> None:
    similarity = torch.rand(2, 3, 4, 5, dtype=torch.float64, generator=torch.manual_seed(1))
    present = everything(similarity[0, 0])
    for part in (StraightThrough(), StraightThrough(seed=0), FixedAlignment()):
        whole = part(similarity, present)
        assert whole.rows.shape == similarity.shape
        assert torch.allclose(whole.cols[1, 2], part(similarity[1, 2], present).cols)


def test_draws_are_repeated_by_the_same_seed_and_no_other() -> None:
    _, padded, present = stack(low=0.1)
    first, again, other = (
        StraightThrough(temperature=0.5, seed=seed)(padded, present).cols for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_draws_follow_the_softmax() -> None:
    similarity = torch.rand(1, 5, 3, dtype=torch.float64, generator=torch.manual_seed(4)) + 0.1
    present = everything(similarity)
    logits = soft_logits(similarity, present, Recursive(), 0.4)
    wanted = soft_choice(logits, present)[0][0]
    noise = np.stack([gumbel_noise(5, 3, seed=k) for k in range(3000)])
    _, drawn = soft_choice(logits + torch.tensor(noise), present)
    assert drawn.double().mean(0).numpy() == pytest.approx(wanted.numpy(), abs=0.04)
    for k in range(3):
        found = StraightThrough(temperature=0.4, seed=k)(similarity, present).cols[0]
        assert found.bool().tolist() == drawn[k].tolist()


def test_noise_is_gumbel() -> None:
    noise = gumbel_noise(200, 200, seed=0)
    assert noise.mean() == pytest.approx(0.5772, abs=0.02)
    assert noise.std() == pytest.approx(1.2825, abs=0.02)


def test_a_lower_temperature_brings_the_softmax_to_the_choice() -> None:
    similarity = torch.rand(5, 6, 6, dtype=torch.float64, generator=torch.manual_seed(5))
    present = everything(similarity)
    gaps = []
    for temperature in (1.0, 0.1, 0.001):
        logits = soft_logits(similarity, present, Recursive(), temperature)
        strength, chosen = soft_choice(logits, present)
        assert strength.sum(1).numpy() == pytest.approx(np.ones((5, 6)))
        gaps.append(float((strength - chosen.double()).abs().max()))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.05


def test_a_held_plan_is_exact_and_constant() -> None:
    single, padded, present = stack()
    s = padded.clone().requires_grad_()
    found = FixedAlignment()(s, present)
    assert found.exact
    assert not found.rows.requires_grad
    for k, (m, n) in enumerate(SIZES):
        assert found.rows[k, :m, :n].tolist() == em.solve(single[k], "lsa").rows.tolist()
    assert not FixedAlignment(RowMask())(s, present).exact


def test_a_held_plan_gives_the_true_gradient_of_exact_assignment() -> None:
    """Of the score itself, solver and all: its plan stays put under small changes."""
    similarity = torch.rand(3, 4, 5, dtype=torch.float64, generator=torch.manual_seed(7))

    def score(s: Any) -> Any:
        weights = torch.ones(3, 4, dtype=s.dtype), torch.ones(3, 5, dtype=s.dtype)
        precision, recall = precision_recall(s, FixedAlignment()(s, everything(s)), *weights)
        return 2 * precision * recall / (precision + recall)

    assert torch.autograd.gradcheck(score, similarity.requires_grad_(), eps=1e-7, atol=1e-5)


def f_cont(x: Any, y: Any) -> Any:
    """F_CONT of a stack of vectors: similarities, masses and plan all depend on them."""
    normalize = torch.nn.functional.normalize
    s = normalize(x, dim=-1) @ normalize(y, dim=-1).mT
    masses = x.norm(dim=-1), y.norm(dim=-1)
    weights = torch.ones_like(masses[0]), torch.ones_like(masses[1])
    alignment = FixedAlignment(em.Emd())(s, everything(s), masses)
    precision, recall = precision_recall(s, alignment, *weights)
    return 2 * precision * recall / (precision + recall)


def vectors(*shape: int, seed: int) -> Any:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.manual_seed(seed)) + 0.1


def test_transport_with_masses_is_what_the_solver_gives() -> None:
    single, padded, present = stack()
    masses = vectors(len(SIZES), 6, seed=1), vectors(len(SIZES), 6, seed=2)
    leaves = [m.clone().requires_grad_() for m in masses]
    for given in (masses, tuple(leaves)):
        found = FixedAlignment(em.Emd())(padded, present, given)
        for k, (m, n) in enumerate(SIZES):
            own = masses[0][k, :m].numpy(), masses[1][k, :n].numpy()
            wanted = em.solve(single[k], "emd", row_mass=own[0], col_mass=own[1])
            assert found.rows[k, :m, :n].detach().numpy() == pytest.approx(wanted.rows, abs=1e-9)
            assert found.cols[k, :m, :n].detach().numpy() == pytest.approx(wanted.cols, abs=1e-9)
        assert not found.rows[~present].any()
        assert not found.cols[~present].any()


def test_the_gradient_of_f_cont_is_that_of_finite_differences() -> None:
    x, y = vectors(3, 4, 3, seed=3), vectors(3, 5, 3, seed=4)
    assert torch.autograd.gradcheck(
        f_cont, (x.requires_grad_(), y.requires_grad_()), eps=1e-7, atol=1e-5
    )


def test_masses_held_constant_would_not_give_the_gradient_of_f_cont() -> None:
    """The part of the gradient that comes through the masses is not small."""
    x, y = vectors(1, 4, 3, seed=3).requires_grad_(), vectors(1, 5, 3, seed=4)
    (whole,) = torch.autograd.grad(f_cont(x, y).sum(), x)
    # A norm changes along its vector, a cosine only across it.
    along = (whole * x).sum(-1).detach()
    assert float(abs(along).max()) > 0.01


def test_masses_do_not_change_an_assignment() -> None:
    s = vectors(2, 4, 5, seed=5)
    masses = vectors(2, 4, seed=6).requires_grad_(), vectors(2, 5, seed=7)
    found = FixedAlignment()(s, everything(s), masses)
    assert not found.rows.requires_grad
    assert (found.rows == FixedAlignment()(s, everything(s)).rows).all()


def test_the_gradient_of_a_plan_by_hand() -> None:
    """Rows 0.6, 0.4 and columns 0.5, 0.5: the plan is 0.5, 0.1; 0, 0.4.

    With the first column's and both rows' mass as variables: T00 = r0, T01 = h0 - r0, T11 = h1.
    """
    rows = np.array([[5 / 6, 1 / 6], [0, 1]])
    h = torch.tensor([0.6, 0.4], dtype=torch.float64, requires_grad=True)
    r = torch.tensor([0.5, 0.5], dtype=torch.float64, requires_grad=True)
    found = differentiable.follow_masses(em.Alignment(rows, rows), h, r)
    assert found.cols.tolist() == [pytest.approx([1, 0.2]), pytest.approx([0, 0.8])]
    # rows[0, 0] = r0 / h0, where h and r are scaled to sum to 1
    found.rows[0, 0].backward()
    assert h.grad.tolist() == pytest.approx([-5 / 6 * 0.4 / 0.6, 5 / 6])
    assert r.grad.tolist() == pytest.approx([0.5 / 0.6, -0.5 / 0.6])


def test_precision_and_recall_of_a_stack_are_those_of_its_matrices() -> None:
    single, padded, present = stack(low=0.1)
    found = FixedAlignment()(padded, present)
    rows, cols = present.any(2).double(), present.any(1).double()
    precision, recall = precision_recall(padded, found, rows, cols)
    for k, (m, n) in enumerate(SIZES):
        alone = precision_recall(single[k], em.solve(single[k], "lsa"), np.ones(m), np.ones(n))
        assert (float(precision[k]), float(recall[k])) == pytest.approx(alone)


def test_settings_without_meaning_are_refused() -> None:
    with pytest.raises(InputError, match="a temperature must be above 0, got 0"):
        StraightThrough(temperature=0.0)
    with pytest.raises(InputError, match="has no useful gradient"):
        StraightThrough(base=Recursive(legacy=True))


def test_single_precision_stays_single() -> None:
    similarity = torch.rand(2, 5, 6, generator=torch.manual_seed(8))
    for part in (StraightThrough(), StraightThrough(seed=0), FixedAlignment()):
        assert part(similarity, everything(similarity)).rows.dtype == torch.float32


def test_refining_goes_the_same_way_in_torch_as_in_numpy() -> None:
    """An accelerator's tensors take torch's way; here both are there to compare."""
    random = np.random.default_rng(9)
    cells, gradient = random.uniform(0, 1, (3, 6, 5)), random.normal(size=(3, 6, 5))
    cells[1, 4:], cells[1, :, 3:] = -np.inf, -np.inf
    cells[2, 1:] = -np.inf
    steps = 80  # enough to be scaled down on the way
    found, trail = differentiable._forward(cells, steps, 0.8)
    tensors, tensor_trail = differentiable._forward(torch.tensor(cells), steps, 0.8)
    assert tensors.tolist() == found.tolist()
    back = differentiable._backward(gradient, trail, 0.8)
    again = differentiable._backward(torch.tensor(gradient), tensor_trail, 0.8)
    assert again.numpy() == pytest.approx(back, rel=1e-12, abs=1e-12)
    assert refine_cells(cells, [steps] * 3, 0.8).tolist() == found.tolist()


def test_the_memory_layout_has_no_effect() -> None:
    plain = torch.rand(3, 6, 5, dtype=torch.float64, generator=torch.manual_seed(10))
    turned = plain.transpose(1, 2).contiguous().transpose(1, 2)
    found = [differentiable.refine_with_gradient(s, 4, 0.8) for s in (plain, turned)]
    assert torch.equal(*found)
