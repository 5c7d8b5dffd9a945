"""Four CUDA devices in name only: tensors that report `cuda:N` and hold CPU data.

An operator obeys CUDA's rules about devices, or fails as it would there; its costs are counted.
Values are the CPU's, so that code that reads them runs as it would on a device. There is no timing,
no stream and no kernel of CUDA's: which attention kernel runs, and how many kernels an operator is,
are written down here from torch's sources.

The device guard (`guard_library`) must be loaded before torch is imported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._foreach_utils
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from . import costs, guard_library

aten = torch.ops.aten
DEVICES = 4
MEMORY = 80 * 2**30
"""Bytes of each device."""
FREE = [MEMORY] * DEVICES
"""Bytes that each device reports as free."""


class Mismatch(RuntimeError):
    """An operator that fails on a CUDA device."""


class Nominal(Tensor):
    """A tensor of a device in name only."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: type[Nominal], held: Tensor, index: int) -> Nominal:
        tensor: Nominal = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            layout=held.layout,
            device=torch.device("cuda", index),
            requires_grad=False,
        )
        tensor.held = held
        return tensor

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Nominal({self.held!r}, cuda:{self.device.index})"

    def tolist(self) -> Any:
        _waits("tolist")
        return self.held.tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise Mismatch(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() first, "
            f"at {costs.place()}"
        )

    def untyped_storage(self) -> Any:
        """For files of weights, which tell tied tensors by their storage."""
        return self.held.untyped_storage()

    @classmethod
    def __torch_dispatch__(
        cls, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _dispatch(operator, args, kwargs or {})


VIEWS = {
    *(
        "view",
        "_unsafe_view",
        "t",
        "transpose",
        "permute",
        "slice",
        "select",
        "expand",
        "unsqueeze",
    ),
    *("squeeze", "detach", "alias", "as_strided", "split", "split_with_sizes", "unbind", "narrow"),
    *("lift_fresh", "diagonal", "reshape", "_reshape_alias", "unsafe_split", "chunk", "unfold"),
    *("view_as", "is_same_size", "sym_size", "sym_stride", "sym_numel", "dim", "size", "stride"),
    *(
        "is_pinned",
        "empty",
        "empty_like",
        "new_empty",
        "empty_strided",
        "new_empty_strided",
        "set_",
    ),
    *("_has_compatible_shallow_copy_type", "requires_grad_", "_version", "real", "is_nonzero"),
}
"""Operators without a kernel."""
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
INDEXING |= {"_unsafe_index_put"}
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "unique", "_unique2", "equal"}
"""Operators for whose result the host waits."""
SEVERAL = {"sort": 8, "topk": 3, "cumsum": 2, "logsumexp": 4, "nonzero": 2, "masked_select": 4}
SEVERAL |= {f"_scaled_dot_product_{kind}_attention_backward": 3 for kind in ("flash", "efficient")}
"""Kernels of an operator, roughly, where it is not one."""
FUSED = {"_fused_rms_norm", "_fused_rms_norm_backward"}
"""Operators that are one kernel on CUDA and several operators elsewhere."""


def _waits(name: str) -> None:
    if not costs.current():
        return
    where = costs.place()
    for counts in costs.current():
        counts.waits[f"{name} at {where}"] += 1


def _copies() -> None:
    if not costs.current():
        return
    where = costs.place()
    for counts in costs.current():
        counts.copies[where] += 1


def _runs(name: str, kernels: int | None = None) -> None:
    if not costs.current():
        return
    number, where = SEVERAL.get(name, 1) if kernels is None else kernels, costs.place()
    for counts in costs.current():
        counts.kernels[where] += number
        counts.operators[name] += number


def _sees(result: Any) -> None:
    """Note tensors of tokens squared."""
    if not costs.current():
        return
    for tensor in tree_leaves(result):
        if not isinstance(tensor, Tensor) or tensor.dim() < 2:
            continue
        if costs.SQUARE <= tensor.shape[-1] == tensor.shape[-2]:
            where = f"{costs.place()} {tuple(tensor.shape)}"
            bytes_ = tensor.numel() * tensor.element_size()
            for counts in costs.current():
                counts.squares[where] = max(counts.squares[where], bytes_)


def _held(values: Any) -> Any:
    return tree_map_only(Nominal, lambda tensor: tensor.held, values)


def _wrapped(values: Any, index: int) -> Any:
    def wrap(tensor: Tensor) -> Tensor:
        return tensor if isinstance(tensor, Nominal) else Nominal(tensor, index)

    return tree_map_only(Tensor, wrap, values)


def _repeated(key: Tensor, query: Tensor) -> Tensor:
    times = query.shape[1] // key.shape[1]
    return key if times == 1 else key.repeat_interleave(times, 1)


def _attention(name: str, args: Any, kwargs: Any, index: int) -> Any:
    """CUDA's fused attention operators by the CPU's kernel."""
    (args, kwargs), scale = _held((args, kwargs)), kwargs.get("scale")
    forward = aten._scaled_dot_product_flash_attention_for_cpu
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
    nothing = torch.zeros((), dtype=torch.int64)
    _runs(name)
    if name == "_scaled_dot_product_flash_attention":
        query, key, value = args[:3]
        causal = args[4] if len(args) > 4 else kwargs.get("is_causal", False)
        key, value = _repeated(key, query), _repeated(value, query)
        out, normaliser = forward(query, key, value, 0.0, causal, scale=scale)
        out, normaliser = _wrapped((out, normaliser), index)
        lengths = query.shape[2], key.shape[2]
        return out, normaliser, None, None, *lengths, nothing, nothing, _wrapped(nothing, index)
    if name == "_scaled_dot_product_efficient_attention":
        query, key, value, bias, _ = args[:5]
        causal = args[6] if len(args) > 6 else kwargs.get("is_causal", False)
        out, normaliser = forward(query, key, value, 0.0, causal, attn_mask=bias, scale=scale)
        return *_wrapped((out, normaliser), index), nothing, nothing
    if name == "_scaled_dot_product_flash_attention_backward":
        gradient, query, key, value, out, normaliser = args[:6]
        times = query.shape[1] // key.shape[1]
        both = _repeated(key, query), _repeated(value, query)
        parts = backward(gradient, query, *both, out, normaliser, 0.0, args[11], scale=scale)
        summed = [part.unflatten(1, (-1, times)).sum(2) for part in parts[1:]]
        return _wrapped((parts[0], *summed), index)
    gradient, query, key, value, bias, out, normaliser = args[:7]
    causal = args[11] if len(args) > 11 else kwargs.get("is_causal", False)
    parts = backward(
        gradient, query, key, value, out, normaliser, 0.0, causal, attn_mask=bias, scale=scale
    )
    return *_wrapped(parts, index), None


def _one_device(operator: Any, name: str, args: Any, kwargs: Any) -> int | None:
    """The device of an operator's tensors; None for the host. Errors: Mismatch."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    nominal = [tensor for tensor in tensors if isinstance(tensor, Nominal)]
    if not nominal:
        return None
    if name in ("copy_", "_to_copy", "set_"):
        return nominal[0].device.index
    indices = {tensor.device.index for tensor in nominal}
    if len(indices) > 1:
        raise Mismatch(
            f"{operator}: Expected all tensors to be on the same device, found cuda:0 and cuda:1, "
            f"at {costs.place()}"
        )
    host = [tensor for tensor in tensors if not isinstance(tensor, Nominal)]
    if name in INDEXING:
        if not isinstance(args[0], Nominal):
            raise Mismatch(f"{operator}: indices should be on the CPU, at {costs.place()}")
        value = args[2] if name.startswith("index_put") else None
        for tensor in host:
            if tensor is not value:
                _copies()
            elif tensor.dim():
                raise Mismatch(f"{operator}: values are on the CPU, at {costs.place()}")
    elif host and (name == "cat" or any(tensor.dim() for tensor in host)):
        raise Mismatch(
            f"{operator}: Expected all tensors to be on the same device, found {nominal[0].device} "
            f"and cpu, at {costs.place()}"
        )
    if "mkldnn" in operator.name() or "for_cpu" in name:
        raise Mismatch(f"{operator}: a kernel of the CPU got CUDA tensors, at {costs.place()}")
    return nominal[0].device.index


def _count(name: str, args: Any, index: int | None, target: int | None) -> None:
    """Count an operator that reads device `index` and writes device `target`."""
    if name == "_to_copy" or name == "copy_":
        source = args[1] if name == "copy_" else args[0]
        read = source.device.index if isinstance(source, Nominal) else None
        written = args[0].device.index if name == "copy_" and isinstance(args[0], Nominal) else None
        written = written if name == "copy_" else target
        if read is None and written is not None:
            _copies()
        elif read is not None and written is None:
            _waits(name)
        elif read is not None:
            cast = name == "_to_copy" and read == written
            _runs("_to_copy (cast)" if cast else name)
            if cast and isinstance(source, torch.nn.Parameter):
                where = costs.place()
                for counts in costs.current():
                    counts.weight_casts[where] += source.numel()
        return
    if index is None and target is None:
        return
    if name in WAITING:
        _waits(name)
    if name not in VIEWS and name != "_local_scalar_dense":
        _runs(name)
    if name == "_fused_rms_norm" and not args[0].is_contiguous():
        _runs("copy_")
    if name in INDEXING:
        for tensor in tree_leaves(args[1]):
            if isinstance(tensor, Tensor) and tensor.dtype == torch.bool:
                _waits("index by bools")


def _dispatch(operator: Any, args: Any, kwargs: Any) -> Any:
    name = operator._schema.name.split("::")[-1]
    decomposes = torch._C._dispatch_has_kernel_for_dispatch_key(
        operator.name(), "CompositeImplicitAutograd"
    )
    if decomposes and name not in FUSED:
        with NominalDevices():  # inference mode does not decompose by itself
            result = operator.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
    if name == "_pin_memory":
        return args[0]
    index = _one_device(operator, name, args, kwargs)
    if index is not None and name.startswith("_scaled_dot_product"):
        return _attention(name, args, kwargs, index)
    asked = kwargs.get("device")
    asked = None if asked is None else torch.device(asked)
    target = index
    if asked is not None:
        target = _number(asked) if asked.type == "cuda" else None
    _count(name, args, index, target)
    held_args, held_kwargs = _held((args, kwargs))
    if asked is not None:
        held_kwargs = {**held_kwargs, "device": torch.device("cpu")}
        if asked.type not in ("cuda", "cpu"):  # meta
            held_kwargs["device"] = asked
            target = None
    out = operator(*held_args, **held_kwargs)
    if target is None or name == "_local_scalar_dense":
        return out
    written = [
        given
        for given, known in zip(args, operator._schema.arguments, strict=False)
        if known.alias_info is not None and known.alias_info.is_write
    ]
    if operator._schema.is_mutable or name == "set_":
        returns = operator._schema.returns
        if not returns:
            return None
        if len(returns) == 1 and written and isinstance(written[0], Tensor):
            return written[0]
    result = _wrapped(out, target)
    if name not in VIEWS:
        _sees(result)
    return result


class NominalDevices(TorchDispatchMode):
    """Makes `device="cuda:N"` mean a device in name only."""

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _dispatch(operator, args, kwargs or {})


def _number(device: torch.device | str | int | None = None) -> int:
    """The index of a device; the thread's current one if it has none."""
    index = device if device is None or isinstance(device, int) else torch.device(device).index
    return guard_library.loaded[0].nominal_current_device() if index is None else index


def _set_device(device: torch.device | str | int) -> None:
    guard_library.loaded[0].nominal_set_device(_number(device))


_sdpa = torch.nn.functional.scaled_dot_product_attention


def _cuda_sdpa(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The choice and the preparations of CUDA's attention, then one of its two fused operators."""
    if not isinstance(query, Nominal):
        return _sdpa(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if torch.is_autocast_enabled("cuda"):
        low = torch.get_autocast_dtype("cuda")
        query, key, value = (
            t.to(low) if t.dtype == torch.float32 else t for t in (query, key, value)
        )
    if len({tensor.dtype for tensor in (query, key, value)}) > 1:
        raise Mismatch(f"attention over tensors of several types, at {costs.place()}")
    half = query.dtype in (torch.float16, torch.bfloat16)
    if half and attn_mask is None:
        out = aten._scaled_dot_product_flash_attention(
            query, key, value, 0.0, is_causal, scale=scale
        )
        return out[0]
    if enable_gqa:
        times = query.shape[1] // key.shape[1]
        size = key.shape[1] * times
        key, value = (t.repeat_interleave(times, 1, output_size=size) for t in (key, value))
    bias = attn_mask
    if bias is not None and bias.dtype == torch.bool:
        lowest = torch.tensor(float("-inf"), dtype=query.dtype)
        bias = torch.where(bias, 0.0, lowest).to(query.dtype)
    if bias is not None:
        bias = bias.expand(*query.shape[:3], key.shape[2])
    train = query.requires_grad
    out = aten._scaled_dot_product_efficient_attention(
        query, key, value, bias, train, 0.0, is_causal, scale=scale
    )
    return out[0]


@contextmanager
def _as_current(device: Any) -> Any:
    before = _number()
    _set_device(device)
    try:
        yield
    finally:
        _set_device(before)


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing."""


def _given(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def install() -> None:
    """Make this process see four devices, in this thread and in new ones."""
    cuda, accelerator = torch.cuda, torch.accelerator
    free = lambda device=None: (FREE[_number(device)], MEMORY)  # noqa: E731
    for module in (cuda, accelerator):
        module.is_available = _given(True)  # type: ignore[attr-defined]
        module.device_count = _given(DEVICES)  # type: ignore[attr-defined]
        module.max_memory_allocated = _given(0)  # type: ignore[attr-defined]
        module.reset_peak_memory_stats = _nothing  # type: ignore[attr-defined]
        module.synchronize = _nothing  # type: ignore[attr-defined]
        module.empty_cache = _nothing  # type: ignore[attr-defined]
    accelerator.current_device_index = _number  # type: ignore[assignment]
    accelerator.current_accelerator = _given(torch.device("cuda"))  # type: ignore[assignment]
    cuda._lazy_init = _nothing  # type: ignore[assignment]
    cuda.is_initialized = _given(True)  # type: ignore[assignment]
    cuda.current_device = _number  # type: ignore[assignment]
    cuda.set_device = _set_device  # type: ignore[assignment]
    cuda.device = _as_current  # type: ignore[assignment,misc]
    cuda.get_device_capability = _given((9, 0))  # type: ignore[assignment]
    cuda.get_device_name = _given("a device in name only")  # type: ignore[assignment]
    cuda.is_bf16_supported = _given(True)  # type: ignore[assignment]
    cuda.get_rng_state = lambda *_, **__: torch.zeros(1, dtype=torch.uint8)  # type: ignore[assignment]
    cuda.set_rng_state = _nothing  # type: ignore[assignment]
    cuda.manual_seed_all = cuda.manual_seed = _nothing  # type: ignore[assignment]
    cuda.mem_get_info = free  # type: ignore[assignment]
    torch.nn.functional.scaled_dot_product_attention = _cuda_sdpa
    torch.utils._foreach_utils._foreach_supported_types.append(Nominal)
    torch._C._set_only_lift_cpu_tensors(True)
    # moves keep a module's parameters, as on CUDA, though their class changes
    torch.__future__.set_swap_module_params_on_conversion(True)
    run = threading.Thread.run

    def on_devices(thread: threading.Thread) -> None:
        torch._C._set_only_lift_cpu_tensors(True)
        with NominalDevices():
            run(thread)

    threading.Thread.run = on_devices  # type: ignore[method-assign]
    NominalDevices().__enter__()
