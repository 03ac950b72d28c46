"""Frameworks and libraries, as the Python distributions that are installed beside this one."""

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
    """Each framework that is installed, with its version."""
    found = ((name, sources.version_of(package)) for package, name in _FRAMEWORKS.items())
    return [f"{name} {version}" for name, version in found if version]


def libraries(sources: Sources) -> dict[str, str]:
    """Versions of libraries and of the driver, by name."""
    found = {
        name: next(filter(None, map(sources.version_of, packages)), "")
        for name, packages in _LIBRARIES.items()
    }
    found["NVIDIA driver"] = driver(sources)
    return {name: version for name, version in found.items() if version}
