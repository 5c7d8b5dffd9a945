"""Published memory sizes and rates of accelerators. They allow time estimates for devices that this
machine lacks."""

from __future__ import annotations

from dataclasses import dataclass

_TERA = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """Data-sheet values of one device. Compute rates are peak rates for dense matrices."""

    name: str
    sold: float
    """Advertised memory in GB, as in the device's name."""
    gib: float
    """Total memory of the device in GiB, as reported by torch."""
    half: float
    """FLOP/s in bfloat16 and float16, with accumulation in float32."""
    tf32: float
    """FLOP/s for float32 matrices rounded to TF32."""
    single: float
    """FLOP/s in float32."""
    bandwidth: float
    """Memory bandwidth in bytes per second."""
    link: float
    """Bytes per second to other devices of the same host, in one direction."""
    sheet: str
    """The source of the rates."""


_A100 = {
    "half": 312 * _TERA,
    "tf32": 156 * _TERA,
    "single": 19.5 * _TERA,
    "link": 300e9,
    "sheet": "NVIDIA A100 Tensor Core GPU data sheet, SXM4",
}
_HOPPER = {"half": 989.4 * _TERA, "tf32": 494.7 * _TERA, "single": 66.9 * _TERA, "link": 450e9}
_PCIE4 = 32e9

ACCELERATORS = (
    Accelerator(name="A100", sold=40.0, gib=39.3, bandwidth=1.555e12, **_A100),  # type: ignore[arg-type]
    Accelerator(name="A100", sold=80.0, gib=79.1, bandwidth=2.039e12, **_A100),  # type: ignore[arg-type]
    Accelerator(
        name="H100",
        sold=80.0,
        gib=79.1,
        bandwidth=3.35e12,
        sheet="NVIDIA H100 Tensor Core GPU data sheet, SXM5; rates without sparsity are half",
        **_HOPPER,
    ),
    Accelerator(
        name="H200",
        sold=141.0,
        gib=139.7,
        bandwidth=4.8e12,
        sheet="NVIDIA H200 Tensor Core GPU data sheet, SXM5; rates without sparsity are half",
        **_HOPPER,
    ),
    Accelerator(
        name="L40S",
        sold=48.0,
        gib=44.3,
        half=362.05 * _TERA,
        tf32=183 * _TERA,
        single=91.6 * _TERA,
        bandwidth=0.864e12,
        link=_PCIE4,
        sheet="NVIDIA L40S data sheet; PCIe 4.0 x16",
    ),
    Accelerator(
        name="RTX4090",
        sold=24.0,
        gib=23.5,
        half=165.2 * _TERA,
        tf32=82.6 * _TERA,
        single=82.6 * _TERA,
        bandwidth=1.008e12,
        link=_PCIE4,
        sheet="NVIDIA Ada GPU architecture white paper, appendix A; PCIe 4.0 x16",
    ),
    Accelerator(
        name="B200",
        sold=180.0,
        gib=178.3,
        half=2250 * _TERA,
        tf32=1125 * _TERA,
        single=75 * _TERA,
        bandwidth=7.7e12,
        link=900e9,
        sheet="NVIDIA HGX B200 data sheet, of eight; rates without sparsity are half",
    ),
)


def accelerator(name: str, sold: float) -> Accelerator | None:
    """Return the device with this name (for example `H100-SXM` or `RTX-4090`) and this memory in
    GB; None if the device is not in the table."""
    plain = name.upper().replace("-", "").replace("_", "")
    for card in ACCELERATORS:
        if sold == card.sold and plain.startswith(card.name):
            return card
    return None
