"""A GGUF file into what every model here is: safetensors, a config and a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenmatch.errors import DataError, MissingExtraError
from evenmatch.vectors.quiet import quiet_transformers


def convert(file: Path) -> None:
    """Write the model of a GGUF file beside it, each weight as the number it stands for."""
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "models packed as GGUF need gguf and accelerate to be unpacked; "
            "install them with: pip install 'evenmatch[gguf]'"
        ) from None
    with quiet_transformers():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        models: Any = AutoModelForCausalLM  # its methods carry no types
        place = str(file.parent)
        try:
            packed = models.from_pretrained(place, gguf_file=file.name, dtype=torch.float32)
            tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=file.name)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            first = str(error).strip().splitlines()[0][:200]
            raise DataError(f"cannot unpack {file.name}: {first}") from None
        # A model that came out of GGUF refuses to be saved; one with the same weights does not.
        settings = packed.config.to_dict()
        settings.pop("quantization_config", None)
        plain = models.from_config(type(packed.config).from_dict(settings))
        plain.load_state_dict(packed.state_dict())
        plain.save_pretrained(place)
        tokenizer.save_pretrained(place)
