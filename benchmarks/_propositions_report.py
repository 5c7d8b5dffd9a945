"""The measurements of `propositions.py` as Markdown tables and as one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from colearn.runs.report.curves import colour

Results = Mapping[str, Any]
GREY, INK = "#d9dde2", "#22262b"
MARKS = ("o", "s", "^", "D")


def tables(results: Results) -> str:
    """All tables, in the order of the page."""
    return "\n\n".join(
        [
            _bias(results),
            _variance(results),
            _calls(results),
            _critics(results),
            _critic_error(results),
        ]
    )


def _bias(results: Results) -> str:
    lines = [
        "| problem | K | trees | max abs t | p | Holm p | outside 95% (of) | norm p, Holm | "
        "scale along g | bias / g | control: scale, p | variance | library: cosine, exact |",
        "|---" * 13 + "|",
    ]
    for part in results["sampling"]:
        for cell in part["cells"]:
            b, library = cell["bias"], cell["library"]
            control = cell.get("control")
            shown = f"{_of(control['along'])}, {control['max_t_p']:.3f}" if control else ""
            verdict = "pass" if min(b["max_t_p_holm"], b["norm_p_holm"]) > 0.05 else "FAIL"
            lines.append(
                f"| {part['problem']} H={part['horizon']} | {cell['K']} | {b['replicates']} "
                f"| {b['max_t']:.2f} | {b['max_t_p']:.3f} | {b['max_t_p_holm']:.2f} {verdict} "
                f"| {b['outside']} ({b['coordinates']}) "
                f"| {b['norm_p']:.3f}, {b['norm_p_holm']:.2f} "
                f"| {_of(b['along'])} | {_of(b['relative'])} | {shown} | {_of(cell['variance'])} "
                f"| {library['cosine']:.3f}, {cell['library_cosine_exact']:.3f} |"
            )
    return "\n".join(lines)


def _variance(results: Results) -> str:
    lines = [
        "| problem | t | K | predicted | independent | tree(K) | tree / predicted | slope (pred.) "
        "| whole turn |",
        "|---" * 9 + "|",
    ]
    for part in results["sampling"]:
        for turn in part["turns"]:
            levels = [cell["K"] for cell in part["cells"]]
            for place, level in enumerate(levels[1:], start=1):
                predicted, tree = turn["predicted"][place], turn["tree"][place]
                free, whole = turn["independent"][place], turn["whole_estimate"][place]
                slope = f"{_of(turn['slope'])} ({turn['slope_predicted']})" if place == 1 else ""
                lines.append(
                    f"| {part['problem']} H={part['horizon']} | {turn['turn']} | {level} "
                    f"| {predicted:.4g} | {'' if free is None else _of(free)} | {_of(tree)} "
                    f"| {tree[0] / predicted:.1f} | {slope} | {_of(whole)} |"
                )
    return "\n".join(lines)


def _calls(results: Results) -> str:
    lines = ["| shape | cases | equal | n=3, K=8, H=3 |", "|---|---|---|---|"]
    for shape in dict.fromkeys(row["shape"] for row in results["calls"]):
        rows = [row for row in results["calls"] if row["shape"] == shape]
        equal = sum(row["counted"] == row["formula"] for row in rows)
        largest = [row["counted"] for row in rows if (row["n"], row["K"], row["H"]) == (3, 8, 3)]
        lines.append(f"| {shape} | {len(rows)} | {equal} | {largest[0] if largest else '-'} |")
    return "\n".join(lines)


def _critics(results: Results) -> str:
    lines = [
        "| problem | estimator | bias / g, exact | bias / g, measured | norm p (no bias) "
        "| norm p (as computed) | joint actions for noise = g |",
        "|---" * 7 + "|",
    ]
    for part in results["critics"]:
        for row in part["rows"] + _trees(results, part):
            expected = row.get("expectation_p")
            lines.append(
                f"| {part['problem']} H={part['horizon']} | {row['estimator']} "
                f"| {row['bias_exact']:.3f} | {_of(row['bias']['relative'])} "
                f"| {row['bias']['norm_p']:.3f} | {'' if expected is None else f'{expected:.3f}'} "
                f"| {_of(row['cost'])} |"
            )
    return "\n".join(lines)


def _trees(results: Results, part: Results) -> list[dict[str, Any]]:
    """The trees of the same problem and horizon, as rows of the critics' table."""
    rows = []
    for other in results["sampling"]:
        if (other["problem"], other["horizon"]) == (part["problem"], part["horizon"]):
            cell = next(cell for cell in other["cells"] if cell["K"] == 4)
            control = dict(cell["control"])
            # Rescaling by K / (K - 1) would change the test: the table of 4.1 has it as it is.
            rows = [
                {
                    "estimator": "MA-REINFORCE, tree(4)",
                    "bias_exact": 0.0,
                    "bias": cell["bias"],
                    "cost": cell["cost"],
                },
                {
                    "estimator": "MAGRPO, tree(4), cost rescaled",
                    "bias_exact": 0.25,
                    "bias": control,
                    "cost": cell["cost_group_mean"],
                },
            ]
    return rows


def _critic_error(results: Results) -> str:
    lines = ["| problem | critic | chains | RMS error / RMS value |", "|---|---|---|---|"]
    for part in results["critics"]:
        for name, errors in part["critic_error"].items():
            for chains, error in errors.items():
                lines.append(
                    f"| {part['problem']} H={part['horizon']} | {name} | {chains} | {error:.4f} |"
                )
    return "\n".join(lines)


def _of(values: Sequence[float]) -> str:
    middle, low, high = values
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def write_figure(results: Results, path: Path) -> None:
    """Four panels, as a PNG."""
    figure = Figure(figsize=(12.5, 9.0), layout="constrained", facecolor="white")
    panels = figure.subplots(2, 2).ravel()
    _draw_variance(panels[0], results)
    _draw_scale(panels[1], results)
    _draw_critics(panels[2], results)
    _draw_cost(panels[3], results)
    for panel in panels:
        panel.grid(color=GREY, linewidth=0.7)
        panel.set_axisbelow(True)
        for side, spine in panel.spines.items():
            spine.set_visible(side in ("left", "bottom"))
        panel.title.set_fontsize(10.5)
    figure.savefig(path, dpi=130)


def _draw_variance(panel: Any, results: Results) -> None:
    part = _part(results["sampling"], "dec_tiger", 3)
    levels = [cell["K"] for cell in part["cells"]]
    for turn in part["turns"]:
        tint = colour(turn["turn"])
        mark = MARKS[turn["turn"]]
        panel.plot(levels, turn["predicted"], color=tint, linestyle="--", linewidth=1.2)
        _errors(panel, levels, turn["tree"], tint, mark, f"turn {turn['turn']}: tree(K)", "-")
        pairs = [(k, v) for k, v in zip(levels, turn["independent"], strict=True) if v and k > 1]
        label = f"independent chains, $K^{{{-turn['slope_predicted']}}}$"
        _errors(
            panel, [k for k, _ in pairs], [v for _, v in pairs], tint, mark, label, "none", True
        )
    panel.plot([], [], color=INK, linestyle="--", linewidth=1.2, label=r"predicted $1/K^{H-t}$")
    panel.set_yscale("log")
    _levels(panel, levels)
    panel.set_ylabel("variance, over that of K = 1")
    panel.set_title("Proposition 4.2 on Dec-Tiger, H = 3: shared prefixes keep variance")
    panel.legend(frameon=False, fontsize=8)


def _draw_scale(panel: Any, results: Results) -> None:
    parts = results["sampling"]
    levels = [cell["K"] for cell in parts[0]["cells"]]
    for number, part in enumerate(parts):
        tint, mark = colour(number), MARKS[number % 4]
        places = [k * 2 ** (0.14 * (number - 2)) for k in levels]
        along = [cell["bias"]["along"] for cell in part["cells"]]
        label = f"{part['problem']}, H = {part['horizon']}"
        _errors(panel, places, along, tint, mark, label, "none")
        control = [cell["control"]["along"] for cell in part["cells"][1:]]
        beside = [place * 2**0.045 for place in places[1:]]
        _errors(panel, beside, control, tint, mark, None, "none", True)
    panel.axhline(1.0, color=INK, linewidth=1)
    panel.plot(levels, [(k - 1) / k for k in levels], color=INK, linestyle=":", linewidth=1.2)
    panel.annotate("control (hollow), group mean:\n(K - 1) / K", (1.3, 0.1), fontsize=8, color=INK)
    _levels(panel, levels)
    panel.set_ylim(-0.1, 1.65)
    panel.set_ylabel("length along the exact gradient")
    panel.set_title("Proposition 4.1: without a baseline the length is 1 (filled)")
    panel.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)


def _draw_critics(panel: Any, results: Results) -> None:
    for number, critic in enumerate(("fresh", "converged", "exact")):
        for side, kind in enumerate(("CC", "DC")):
            places = [k + 0.13 * (2 * number + side - 2.5) for k in range(len(results["critics"]))]
            rows = [
                next(row for row in part["rows"] if row["estimator"] == f"{kind} {critic}")
                for part in results["critics"]
            ]
            panel.bar(
                places,
                [row["bias_exact"] for row in rows],
                width=0.11,
                color=colour(number),
                alpha=0.75 if side else 0.4,
                hatch="//" if side else None,
                edgecolor="white",
                label=f"{kind}, {critic} critic",
            )
            _errors(
                panel, places, [row["bias"]["relative"] for row in rows], INK, ".", None, "none"
            )
    _problems(panel, results)
    panel.set_ylabel("|bias| / |gradient|")
    panel.set_title("Eq. 2 and 4: bias by critic (bars: computed; dots: measured, 95%)")
    panel.legend(frameon=False, fontsize=8, ncols=1, loc="upper left")


def _draw_cost(panel: Any, results: Results) -> None:
    labels = dict.fromkeys(row["estimator"] for row in results["critics"][0]["rows"])
    labels |= dict.fromkeys(row["estimator"] for row in _trees(results, results["critics"][0]))
    names = [name for name in labels if "MA" in name] + [n for n in labels if n[2:] == " exact"]
    names += [name for name in labels if name[2:] == " fresh"]
    for number, name in enumerate(names):
        places, values = [], []
        for place, part in enumerate(results["critics"]):
            for row in part["rows"] + _trees(results, part):
                if row["estimator"] == name:
                    places.append(place + 0.09 * (number - len(names) / 2))
                    values.append(row["cost"])
        _errors(
            panel,
            places,
            values,
            colour(number % 7),
            MARKS[number % 4],
            name.replace(", cost rescaled", ", rescaled").replace("fresh", "fresh (biased)"),
            "none",
            number >= 7,
        )
    panel.set_yscale("log")
    _problems(panel, results)
    panel.set_ylabel("joint actions until noise = gradient")
    panel.set_title("Variance at equal joint actions (lower is better)")
    panel.legend(frameon=False, fontsize=8, loc="upper left")


def _part(parts: Sequence[Results], problem: str, horizon: int) -> Results:
    return next(p for p in parts if (p["problem"], p["horizon"]) == (problem, horizon))


def _problems(panel: Any, results: Results) -> None:
    names = [f"{part['problem']}\nH = {part['horizon']}" for part in results["critics"]]
    panel.set_xticks(range(len(names)), names)


def _levels(panel: Any, levels: Sequence[int]) -> None:
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator(levels))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(ScalarFormatter())
    panel.set_xlabel("K")


def _errors(
    panel: Any,
    x: Sequence[float],
    values: Sequence[Sequence[float]],
    tint: str,
    mark: str,
    label: str | None,
    line: str,
    hollow: bool = False,
) -> None:
    """Points with their 95% intervals."""
    panel.errorbar(
        x,
        [v[0] for v in values],
        [[max(0.0, v[0] - v[1]) for v in values], [max(0.0, v[2] - v[0]) for v in values]],
        color=tint,
        marker=mark,
        markersize=5,
        markerfacecolor="white" if hollow else tint,
        linestyle=line,
        linewidth=1.4,
        capsize=2.5,
        label=label,
    )
