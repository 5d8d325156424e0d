"""Losses as functions of their numbers and buffers, for many settings at once; and by name."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
import torch
from sklearn.base import clone
from torch.utils._python_dispatch import TorchDispatchMode

from skdice import losses
from skdice.losses import (
    LOSS_NAMES,
    LOSSES,
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    FocalLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)
from skdice.losses.base import resolve_loss
from skdice.losses.search_ranges import OneMinus, Range

COUNTS = [[30.0, 6.0, 4.0], [20.0, 20.0, 1.0]]
# Numbers that are not the defaults, where a search space would leave a parameter alone.
MORE = {
    "ce tau": (CrossEntropyLoss(class_weight=[1.0, 2.0, 3.0]), {"tau": [0.5, 1.0]}),
    "weighted_ce given": (WeightedCrossEntropyLoss(class_weight=[1.0, 2.0, 3.0]), {}),
    "focal alpha": (FocalLoss(), {"alpha": [0.3, 0.8]}),
    "dice formula": (DiceLoss.literal(average="auto"), {"smooth": [0.1, 1.0]}),
    "dice samples": (DiceLoss.literal(class_weight=[1.0, 2.0, 0.5]), {"smooth": [0.1, 2.0]}),
    "tversky macro": (TverskyLoss(average="macro"), {"alpha": [0.2, 0.6]}),
    "dsc formula": (DSCLoss(surrogate="none"), {"exponent": [0.0, 0.4]}),
    "ce_dice of everything": (
        CompoundLoss(CrossEntropyLoss(class_weight=[1.0, 2.0, 1.5]), DSCLoss()),
        {
            "weight": [0.2, 0.8],
            "first__tau": [0.5, 1.0],
            "second__exponent": [0.05, 0.3],
        },
    ),
}


def as_function(loss):
    """A loss as a function of its numbers, its buffers and a batch: the value, and new buffers."""
    loss = copy.deepcopy(loss)

    def call(numbers, buffers, *batch):
        for name, value in {**numbers, **buffers}.items():
            part, _, own = name.replace("__", ".").rpartition(".")
            setattr(loss.get_submodule(part), own, value)
        value = loss(*batch)
        return value, {name: loss.get_buffer(name) for name in buffers}

    return call


def searched(loss):
    """Two values of each number that is worth searching."""
    return {
        name: [values.low + 0.3 * (values.high - values.low), values.high]
        for name, values in loss.search_space().items()
        if isinstance(values, Range)
    }


CASES = {**{name: (cls(), searched(cls)) for name, cls in LOSSES.items()}, **MORE}


def batches(n_batches=3, shape=(2, 2), one_logit=False, seed=0):
    """Logits of each lane and fold; the targets and weights of a fold are those of its lanes."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n_batches):
        size = (*shape, 9) if one_logit else (*shape, 9, 3)
        z = torch.randn(size, generator=generator, dtype=torch.float64)
        y = torch.randint(2 if one_logit else 3, (shape[0], 9), generator=generator)
        y[:, 0] = -100
        weight = torch.rand(shape[0], 9, generator=generator, dtype=torch.float64)
        weight[:, 1] = 0
        yield z, y, weight


@pytest.mark.parametrize("one_logit", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_lanes_and_folds_are_a_loop_over_modules(case, one_logit):
    loss, params = CASES[case]
    if one_logit and "class_weight=[" in repr(loss):
        pytest.skip("its weights are of three classes")
    counts = [c[:2] for c in COUNTS] if one_logit else COUNTS
    alone = [
        [
            clone(loss).set_params(**{n: v[lane] for n, v in params.items()}).prepare(c, 0)
            for lane in range(2)
        ]
        for c in counts
    ]
    shared = clone(loss).prepare(counts[0], 0)
    before = copy.deepcopy(dict(shared.named_buffers()))
    values = {n: torch.tensor(v, dtype=torch.float64) for n, v in params.items()}
    states = [[dict(one.named_buffers()) for one in fold] for fold in alone]
    state = {
        name: torch.stack([torch.stack([s[name] for s in fold]) for fold in states])
        for name in states[0][0]
    }
    call = as_function(shared)
    slope = torch.func.grad_and_value(lambda z, v, s, y, w: call(v, s, z, y, w), has_aux=True)
    over_lanes = torch.func.vmap(slope, in_dims=(0, 0, 0, None, None))
    over_folds = torch.func.vmap(over_lanes, in_dims=(0, None, 0, 0, 0))
    if not values:  # vmap maps no empty dict
        over_lanes = torch.func.vmap(slope, in_dims=(0, None, 0, None, None))
        over_folds = torch.func.vmap(over_lanes, in_dims=(0, None, 0, 0, 0))
    for z, y, weight in batches(one_logit=one_logit):
        slopes, (found, state) = over_folds(z, values, state, y, weight)
        for f, fold in enumerate(alone):
            for lane, module in enumerate(fold):
                own = z[f, lane].clone().requires_grad_()
                want = module(own, y[f], sample_weight=weight[f])
                torch.testing.assert_close(found[f, lane], want.detach())
                torch.testing.assert_close(slopes[f, lane], torch.autograd.grad(want, own)[0])
                for name, buffer in module.named_buffers():
                    torch.testing.assert_close(
                        state[name][f, lane], buffer, check_dtype=False, msg=name
                    )
    # The module that gave the function is as it was.
    assert shared == clone(loss)
    assert dict(shared.named_buffers()).keys() == before.keys()
    for name, buffer in shared.named_buffers():
        torch.testing.assert_close(buffer, before[name])


@pytest.mark.parametrize("cls", [losses.Loss, *LOSSES.values()])
def test_a_loss_is_computed_by_forward_and_by_its_kernel_alone(cls):
    public = {name for name in dir(cls) if name[0] != "_" and not hasattr(torch.nn.Module, name)}
    methods = {name: getattr(cls, name) for name in public | {"forward"}}
    batch = {"logits", "inputs"}
    computing = {
        n for n, m in methods.items() if callable(m) and batch & {*inspect.signature(m).parameters}
    }
    assert computing == ({"forward"} if cls is losses.Loss else {"forward", "kernel"})


class KernelsOfCUDA(TorchDispatchMode):
    """That of `log_sigmoid` has no use for a buffer and returns an empty one."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        if function.overloadpacket is torch.ops.aten.log_sigmoid_forward:
            return found[0], found[0].new_empty(0)
        return found


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("one_logit", [False, True])
def test_two_vmaps_run_on_a_gpu(name, one_logit):
    loss = LOSSES[name]().prepare(COUNTS[0][: 2 if one_logit else 3], 0)
    call = torch.func.vmap(as_function(loss), in_dims=(None, None, 0, None, None))
    call = torch.func.vmap(call, in_dims=(None, None, 0, 0, 0))
    given = {}, dict(loss.named_buffers()), *next(batches(one_logit=one_logit))
    with KernelsOfCUDA(), torch.no_grad():
        found, _ = call(*given)
    torch.testing.assert_close(found, call(*given)[0])


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_hyperparameters(name):
    loss = LOSSES[name]().prepare(COUNTS[0], 0)
    z, y, weight = (tensor[0] for tensor in next(batches()))
    call, state = as_function(loss), dict(loss.named_buffers())
    for parameter, (low, _) in searched(loss).items():
        found = torch.func.grad(lambda v, n=parameter: call({n: v}, state, z[0], y, weight)[0])(
            torch.tensor(low, dtype=torch.float64)
        )
        assert torch.isfinite(found)


@pytest.mark.parametrize("name", LOSSES)
def test_out_of_training_nothing_is_adjusted(name):
    loss = LOSSES[name]()
    given = {"tau"} & set(loss.get_params())
    loss.set_params(**dict.fromkeys(given, 0.5)).prepare(COUNTS[0], 0).eval()
    z, y, weight = (tensor[0] for tensor in next(batches()))
    value, state = as_function(loss)({}, dict(loss.named_buffers()), z[0], y, weight)
    torch.testing.assert_close(value, loss(z[0], y, sample_weight=weight))
    torch.testing.assert_close(value, LOSSES[name]().prepare(COUNTS[0], 0)(z[0], y, weight))
    for key, buffer in loss.named_buffers():
        assert state[key] is buffer


def test_state_is_buffers():
    loss = CompoundLoss("weighted_ce").prepare([5, 3, 2], 0)
    state = dict(loss.named_buffers())
    assert set(state) == set(loss.state_dict())
    assert state["first.class_counts_"].tolist() == [5, 3, 2]
    assert state["second.n_samples_"] == 10
    z, y, _ = (tensor[0] for tensor in next(batches()))
    told = CompoundLoss("weighted_ce").prepare([1, 1, 1], 0)
    told.load_state_dict(loss.state_dict())
    copied = pickle.loads(pickle.dumps(loss))
    for other in (told, copied, copy.deepcopy(loss)):
        torch.testing.assert_close(other(z[1], y), copy.deepcopy(loss)(z[1], y))
    assert all(buffer.device.type == "meta" for buffer in loss.to("meta").buffers())


def test_a_device_without_float64_has_float32():
    loss = DiceLoss().prepare([5, 3])

    def moved(tensor):
        if tensor.dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return tensor.clone()

    loss._apply(moved)
    assert (loss.class_counts_.dtype, loss.class_counts_.tolist()) == (torch.float32, [5, 3])


def test_names_and_exports():
    assert LOSS_NAMES[:7] == ("ce", "weighted_ce", "focal", "dice", "tversky", "dsc", "ce_dice")
    assert tuple(LOSSES) == LOSS_NAMES
    for name, cls in LOSSES.items():
        assert cls.name == name
        assert getattr(losses, cls.__name__) is cls


def test_a_loss_is_named_by_being_defined():
    try:

        class Halved(DiceLoss):
            name = "halved"

            def forward(self, *args, **kwargs):
                return super().forward(*args, **kwargs) / 2

        z, y, _ = (tensor[0] for tensor in next(batches()))
        assert resolve_loss("halved") == Halved()
        torch.testing.assert_close(resolve_loss("halved")(z[0], y), DiceLoss()(z[0], y) / 2)

        class Again(DiceLoss):  # as when a cell of a notebook runs twice
            name = "halved"

        assert type(resolve_loss("halved")) is Again
    finally:
        LOSSES.pop("halved", None)

    class Nameless(DiceLoss):
        pass

    assert Nameless not in LOSSES.values()
    with pytest.raises(ValueError, match=r"Mine\.name='dice' is the name of DiceLoss"):

        class Mine(DiceLoss):
            name = "dice"

    with pytest.raises(TypeError, match="name=3 must be a string"):

        class Number(DiceLoss):
            name = 3

    assert tuple(LOSSES) == LOSS_NAMES


@pytest.mark.parametrize("name", LOSSES)
def test_search_spaces_are_of_own_parameters(name):
    space = LOSSES[name].search_space()
    assert space
    for parameter, values in space.items():
        if isinstance(values, Range):
            for value in (values.low, values.high):
                changed = LOSSES[name]().set_params(**{parameter: value})
                assert changed.get_params()[parameter] == value
        else:
            assert values({values.name: 0.25}) == 0.75
            assert isinstance(space[values.name], Range)
    assert LOSSES["tversky"].search_space()["beta"] == OneMinus("alpha")


@pytest.mark.parametrize("name", LOSSES)
def test_what_a_loss_is(name):
    loss = LOSSES[name]()
    assert loss.has_functional_form
    assert loss.normalizes_over_positions == (name == "ce")
    one_by_one = ("ce", "weighted_ce", "focal")
    assert loss.is_set_level == (name not in one_by_one)

    class Own(LOSSES[name]):
        def forward(self, logits, target, sample_weight=None):
            return logits.sum()

    assert not Own().has_functional_form
    for part in ("first", "second"):  # it would compute the kernel that Own inherits
        with pytest.raises(TypeError, match=rf"{part}=Own\(.*\) computes .* in `forward`"):
            CompoundLoss(**{part: Own()})
        with pytest.raises(TypeError, match=rf"{part}=Own\(.*\) computes .* in `forward`"):
            CompoundLoss().set_params(**{part: Own()})


@pytest.mark.parametrize("name", LOSSES)
def test_equality_is_of_class_and_parameters(name):
    loss = LOSSES[name]()
    assert loss == clone(loss) == copy.deepcopy(loss).prepare([3, 1])
    assert len({loss, clone(loss)}) == 2
    parameter, values = next(iter(searched(loss).items()))
    assert loss != clone(loss).set_params(**{parameter: values[0]})

    class Own(LOSSES[name]):
        pass

    assert loss != Own()
    assert loss != name


def test_equality_of_arrays():
    assert DiceLoss(smooth=torch.tensor(1.0)) == DiceLoss(smooth=torch.tensor(1.0))
    assert DiceLoss(smooth=torch.tensor(1.0)) != DiceLoss(smooth=1.0)
    two, one = torch.tensor([1.0, 2.0]), torch.tensor([1.0])
    assert DiceLoss(class_weight=two) != DiceLoss(class_weight=one)
    assert DiceLoss(class_weight=[1, 2]) == DiceLoss(class_weight=[1, 2]) != DiceLoss()


def test_literal_forms_are_the_papers():
    own = {"average": "samples", "smooth": 1.0, "surrogate": "none"}
    assert DiceLoss.literal().get_params() == {**DiceLoss().get_params(), **own}
    assert TverskyLoss.literal(alpha=0.5, beta=0.5) == TverskyLoss(
        alpha=0.5, beta=0.5, average="samples", smooth=1.0, surrogate="none", squared=False
    )
    with pytest.warns(UserWarning, match="p = 1/2"):
        literal = DSCLoss.literal(smooth=0.5)
    assert literal == DSCLoss(
        exponent=1.0, average="samples", smooth=0.5, surrogate="none", squared=False
    )
