"""What the installed llama.cpp is and which devices it can use, with or without a model."""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
import sys
from pathlib import Path

import llama_cpp

from salt_tui.engine.model_info import Build, Device

_KINDS = {0: "cpu", 1: "gpu", 2: "integrated gpu", 3: "accelerator"}
_ENGINE_PACKAGES = ("llama-cpp-python", "numpy", "jinja2")


def describe_build() -> Build:
    """Return versions, devices and llama.cpp's own line about the instruction sets it was built for."""
    devices = list_devices()
    versions = {name: importlib.metadata.version(name) for name in _ENGINE_PACKAGES}
    versions["python"] = platform.python_version()
    ggml = _ggml_version()
    if ggml is not None:
        versions["ggml"] = ggml
    return Build(
        engine="llama.cpp",
        versions=versions,
        supports_gpu=bool(llama_cpp.llama_supports_gpu_offload()),
        devices=devices,
        system_information=" ".join(llama_cpp.llama_print_system_info().decode("utf-8", "replace").split()),
    )


def list_devices() -> tuple[Device, ...]:
    """Return every device that the library's backends offer; empty when the library has no such functions."""
    ggml, base = ggml_library("ggml"), ggml_library("ggml-base")
    if ggml is None or base is None:
        return ()
    count, get = ggml.ggml_backend_dev_count, ggml.ggml_backend_dev_get
    count.restype, count.argtypes = ctypes.c_size_t, []
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    name, description = base.ggml_backend_dev_name, base.ggml_backend_dev_description
    for function in (name, description):
        function.restype, function.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    kind, memory = base.ggml_backend_dev_type, base.ggml_backend_dev_memory
    kind.restype, kind.argtypes = ctypes.c_int, [ctypes.c_void_p]
    size = ctypes.POINTER(ctypes.c_size_t)
    memory.restype, memory.argtypes = None, [ctypes.c_void_p, size, size]
    devices: list[Device] = []
    for index in range(count()):
        device = get(index)
        free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
        memory(device, ctypes.byref(free), ctypes.byref(total))
        devices.append(
            Device(
                name=name(device).decode("utf-8", "replace"),
                description=description(device).decode("utf-8", "replace"),
                kind=_KINDS.get(kind(device), "other"),
                memory_free=free.value if total.value else None,
                memory_total=total.value or None,
            )
        )
    return tuple(devices)


def can_offload(devices: tuple[Device, ...]) -> bool:
    """Tell whether layers can be computed elsewhere than on the CPU: a build for it and a device."""
    return bool(llama_cpp.llama_supports_gpu_offload()) and any("gpu" in device.kind for device in devices)


def ggml_library(name: str) -> ctypes.CDLL | None:
    """Return a library that llama_cpp has already loaded from its own folder."""
    folder = Path(llama_cpp.__file__).parent / "lib"
    suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
    for path in (folder / f"lib{name}{suffix}", folder / f"lib{name}.so", folder / f"{name}{suffix}"):
        if path.exists():
            return ctypes.CDLL(str(path))
    return None


def _ggml_version() -> str | None:
    base = ggml_library("ggml-base")
    if base is None or not hasattr(base, "ggml_version"):
        return None
    base.ggml_version.restype = ctypes.c_char_p
    base.ggml_commit.restype = ctypes.c_char_p
    return f"{base.ggml_version().decode()} ({base.ggml_commit().decode()})"
