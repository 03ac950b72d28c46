"""Frameworks and libraries, from the installed Python distributions."""

from __future__ import annotations

from mlperf_pkg.commands.system.accelerators import driver
from mlperf_pkg.commands.system.sources import Sources

_FRAMEWORKS = {
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "paddlepaddle-gpu": "PaddlePaddle",
    "paddlepaddle": "PaddlePaddle",
    "mindspore": "MindSpore",
    "mxnet": "MXNet",
    "tinygrad": "tinygrad",
    "popart": "PopART",
}
_CUDA = ("13", "12", "11")  # suffixes of distributions, the newest first
_LIBRARIES = {
    "CUDA": ("nvidia-cuda-runtime", *(f"nvidia-cuda-runtime-cu{n}" for n in _CUDA)),
    "cuDNN": tuple(f"nvidia-cudnn-cu{n}" for n in _CUDA),
    "NCCL": tuple(f"nvidia-nccl-cu{n}" for n in _CUDA),
    "cuBLAS": ("nvidia-cublas", *(f"nvidia-cublas-cu{n}" for n in _CUDA)),
    "DALI": tuple(f"nvidia-dali-cuda{n}0" for n in _CUDA),
    "Transformer Engine": ("transformer-engine",),
    "FlashAttention": ("flash-attn",),
    "Apex": ("apex",),
    "Megatron Core": ("megatron-core",),
    "NeMo": ("nemo-toolkit",),
    "Lightning": ("lightning", "pytorch-lightning"),
    "DeepSpeed": ("deepspeed",),
    "Horovod": ("horovod",),
    "Transformers": ("transformers",),
    "jaxlib": ("jaxlib",),
    "libtpu": ("libtpu", "libtpu-nightly"),
    "XLA": ("torch-xla",),
    "Triton": ("triton",),
}


def frameworks(sources: Sources) -> list[str]:
    """Return each installed framework with its version."""
    versions = ((name, sources.version_of(package)) for package, name in _FRAMEWORKS.items())
    return [f"{name} {version}" for name, version in versions if version]


def libraries(sources: Sources) -> dict[str, str]:
    """Return the versions of libraries and of the driver, by name."""
    versions = {
        name: next(filter(None, map(sources.version_of, packages)), "")
        for name, packages in _LIBRARIES.items()
    }
    versions["NVIDIA driver"] = driver(sources)
    return {name: version for name, version in versions.items() if version}
