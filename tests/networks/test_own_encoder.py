"""An encoder of the user's is tried before anything is trained."""

import numpy as np
import pytest

from music_tf.config.world import trust
from music_tf.errors import UsageError
from music_tf.networks.own_encoder import own_encoder, own_outputs
from music_tf.recipes.pearl import PearlConfig
from tests.kit import encoders
from tests.kit.cases import cases


def inference_of(function, trusted=True):
    word = f"{encoders.HERE}:{function}"
    if trusted:
        trust([word])
    return PearlConfig(encoder=word, encoder_sizes=(4,), latent_size=2).inference


@pytest.mark.parametrize("function", ["rowwise", "pooled", "recurrent", "nested"])
def test_a_model_that_fits_is_taken(function):
    first, second = (own_encoder(inference_of(function), 5, seed) for seed in (1, 1))
    assert (first.model.input_shape, first.model.output_shape[-1]) == ((None, None, 5), 4)
    # Keras counts its layers on; a checkpoint finds the weights all the same
    assert first.model.layers[1].name != second.model.layers[1].name
    assert first.weight_names == second.weight_names
    assert first.weight_names[0] == "encoder/0/kernel"


@cases(
    ("function", "told"),
    ("flat", r"maps contexts \[B, N, 5\] to \[B, M, 4\] in float32, got \[2, 4\] for \[2, 3, 5\]"),
    ("narrow", r"got \[2, 3, 3\] for"),
    ("short", r"short fails: ValueError: .*incompatible"),
    ("half", r"to \[B, M, 4\] in float32, got float16"),
    ("running", r"got 4 trainable and 2 others .*moving_mean"),
    ("weightless", r"got 0 trainable and 0 others"),
    ("nothing", r"must return a keras\.Model .* got None"),
    ("failing", r"failing fails: ZeroDivisionError: in the encoder"),
    ("missing", r"there is no 'missing' in"),
)
def test_what_does_not_fit_is_refused_with_what_was_expected(function, told):
    with pytest.raises(UsageError, match=f"^agent\\.encoder: .*{told}"):
        own_encoder(inference_of(function), 5)


@cases(
    ("edit", "told"),
    (
        {"encoder/4/kernel": np.zeros([4, 4], np.float32)},  # a layer was removed
        r"encoder/4/kernel: expected None, found \(4, 4\) in the checkpoint",
    ),
    ({"encoder/3/bias": None}, r"encoder/3/bias: expected \(4,\), found None"),
    ids=["removed", "added"],
)
def test_weights_of_another_model_than_the_function_makes_are_refused(edit, told):
    inference, context = inference_of("rowwise"), np.ones([3, 5], np.float32)
    network = own_encoder(inference, 5)
    named = zip(network.weight_names, network.shapes, strict=True)
    weights = {name: np.ones(shape, np.float32) for name, shape in named}
    assert own_outputs(weights, inference, context).shape == (3, 4)
    edited = {name: array for name, array in (weights | edit).items() if array is not None}
    with pytest.raises(UsageError, match=rf"^agent\.encoder: .*rowwise makes another.*: {told}"):
        own_outputs(edited, inference, context)
