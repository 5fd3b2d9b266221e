"""A model of transformers out of a folder: verified, safe to load, and put where it is to run."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from evenmatch.errors import DataError, InputError
from evenmatch.vectors.checkpoints import Checkpoint, unreadable, verify
from evenmatch.vectors.memory import keep_few_kernels
from evenmatch.vectors.quiet import quiet_transformers


def load_auto(
    kind: str, checkpoint: Checkpoint, trust_remote_code: bool, *, outputs: int = 0
) -> tuple[Any, Mapping[str, Any]]:
    """A model by one of transformers' Auto classes, and what it says of how loading went.

    Pickled weights are read as weights only: a file that would run code is refused. `outputs` asks
    for a head with so many numbers, new where the folder has none.
    """
    verify(checkpoint)
    with quiet_transformers():
        import torch
        import transformers
        from safetensors import SafetensorError

        try:
            loaded = getattr(transformers, kind).from_pretrained(
                str(checkpoint.folder),
                trust_remote_code=trust_remote_code,
                dtype=torch.float32,
                weights_only=True,
                output_loading_info=True,
                **({"num_labels": outputs} if outputs else {}),
            )
        except pickle.UnpicklingError:
            raise unsafe(str(checkpoint.folder)) from None
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise unreadable(checkpoint, error) from None
    model, told = loaded
    return model, told


def unsafe(place: str) -> DataError:
    """What is said of a pickle that holds anything but tensors."""
    return DataError(
        f"the pickle in {place} holds more than weights and is not loaded; "
        "give weights as safetensors, or as a pickle that torch reads with weights_only=True"
    )


def placed(model: Any, device: str) -> Any:
    """The model on that device."""
    keep_few_kernels()
    try:
        return model.to(device)
    except (AssertionError, RuntimeError) as error:  # what torch raises for a device it lacks
        reason = str(error).strip().splitlines()[0][:160]
        raise InputError(
            f"torch cannot use the device {device!r} ({reason}); use one it has, such as 'cpu'"
        ) from None
