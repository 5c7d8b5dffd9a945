// Pictures of a world as SVG, in the look of the report. An event may come from anywhere: what is
// not the plain data of a picture is not drawn, and every text enters as text.

const SVG = "http://www.w3.org/2000/svg";
const SIDE = 24; // of a cell, in units of its SVG
const SMALL = 4; // columns or rows
const WIDE = 36; // pixels of a cell of small panels
const DENSE = 20; // of larger ones
const LARGEST = 1000; // columns or rows
const KINDS = ["#4c9f70", "#c2703d", "#5b7fbf", "#b65f8f", "#a39b3b", "#5fa8ad", "#8a6fb0", "#9a9a9a"];
const NUMBERS = "123456789abcdefghijklmnopqrstuvwxyz";
const MARKS = { missing: "missing", extra: "extra: belongs empty", wrong: "another kind belongs here" };

// Kinds without a colour of their own keep theirs from episode to episode.
const spare = new Map();

class Unfit extends Error {}

function need(condition) {
  if (!condition) throw new Unfit();
}

function list(value) {
  need(Array.isArray(value));
  return value;
}

function text(value) {
  need(typeof value === "string");
  return value;
}

function whole(value, least, most) {
  need(Number.isInteger(value) && value >= least && value <= most);
  return value;
}

// The groups of panels and the caption of a plain picture, null where it is none.
export function readWorld(data) {
  if (data === null || typeof data !== "object") return null;
  try {
    return readPicture(data);
  } catch (error) {
    if (error instanceof Unfit) return null;
    throw error;
  }
}

function readPicture(data) {
  const kinds = list(data.kinds).map(text);
  const owners = list(data.owners).map(text);
  need(data.colours !== null && typeof data.colours === "object");
  const colours = new Map(Object.entries(data.colours));
  for (const colour of colours.values()) need(/^#[0-9a-f]{6}$/i.test(text(colour)));
  const groups = list(data.groups).map((group) => list(group).map((panel) => readPanel(panel, kinds, owners)));
  return { groups, colours, caption: text(data.caption) };
}

function readPanel(panel, kinds, owners) {
  need(panel !== null && typeof panel === "object");
  const [columns, rows] = list(panel.size).map((size) => whole(size, 1, LARGEST));
  need(panel.size.length === 2);
  const cells = list(panel.cells).map((cell) => {
    const [x, y, kind, owner, mark] = list(cell);
    need(mark === "" || (typeof mark === "string" && Object.hasOwn(MARKS, mark)));
    return {
      x: whole(x, 0, columns - 1),
      y: whole(y, 0, rows - 1),
      kind: kinds[whole(kind, -1, kinds.length - 1)] ?? "",
      owner: owners[whole(owner, -1, owners.length - 1)] ?? "",
      mark,
    };
  });
  return { title: text(panel.title), columns, rows, cells };
}

// A world that `readWorld` gave, as a figure. `agents` are numbered in their order and have the
// `colours` in the same order; below stands what colours and marks mean.
export function drawWorld(world, { agents, colours }) {
  const cells = world.groups.flat().flatMap((panel) => panel.cells);
  const present = (name) => [...new Set(cells.map((cell) => cell[name]))].filter(Boolean);
  const names = [...new Set([...agents, ...present("owner")])];
  const look = {
    kinds: new Map(present("kind").map((kind) => [kind, colourOf(kind, world.colours)])),
    owners: names.map((name, index) => ({
      name,
      digit: NUMBERS[index % NUMBERS.length],
      colour: colours[index % colours.length],
    })).filter(({ name }) => cells.some((cell) => cell.owner === name)),
    marks: Object.keys(MARKS).filter((mark) => cells.some((cell) => cell.mark === mark)),
  };
  const groups = world.groups.map((group) =>
    html("div", "group", ...group.map((panel) => drawPanel(panel, look))));
  const figure = html("figure", "world", html("div", "groups", ...groups));
  if (world.caption) figure.append(html("figcaption", "", world.caption));
  figure.append(drawLegend(look));
  return figure;
}

function colourOf(kind, given) {
  if (given.has(kind)) return given.get(kind);
  if (!spare.has(kind)) spare.set(kind, KINDS[spare.size % KINDS.length]);
  return spare.get(kind);
}

function drawPanel(panel, look) {
  const side = Math.max(panel.columns, panel.rows) <= SMALL ? WIDE : DENSE;
  const drawing = svg("svg", {
    viewBox: `0 0 ${panel.columns * SIDE} ${panel.rows * SIDE}`,
    width: panel.columns * side,
    height: panel.rows * side,
    role: "img",
    "aria-label": told(panel),
  });
  drawing.append(grid(panel));
  const missing = (cell) => cell.mark === "missing";
  const standing = panel.cells.filter((cell) => !missing(cell));
  drawing.append(...blocks(standing.filter((cell) => !cell.kind), "plain"));
  for (const [kind, fill] of look.kinds) {
    const cells = panel.cells.filter((cell) => cell.kind === kind);
    drawing.append(...blocks(cells.filter((cell) => !missing(cell)), "block", fill));
    drawing.append(...blocks(cells.filter(missing), "block absent", fill));
  }
  for (const mark of look.marks) {
    drawing.append(...marked(panel.cells.filter((cell) => cell.mark === mark), mark));
  }
  for (const owner of look.owners) {
    drawing.append(...discs(standing.filter((cell) => cell.owner === owner.name), owner));
  }
  return html("div", "panel", html("small", "", panel.title), drawing);
}

function drawLegend(look) {
  const here = [{ x: 0, y: 0 }];
  const entries = [
    ...[...look.kinds].map(([kind, fill]) => [blocks(here, "block", fill), kind, 0]),
    ...look.owners.map((owner) => [discs(here, owner), owner.name, 4]),
    ...look.marks.map((mark) => [marked(here, mark), MARKS[mark], 0]),
  ];
  return html("p", "legend", ...entries.map(([shapes, meaning, edge]) => {
    const viewBox = `${edge} ${edge} ${SIDE - 2 * edge} ${SIDE - 2 * edge}`;
    const key = svg("svg", { viewBox, width: 16, height: 16, "aria-hidden": "true" });
    key.append(...shapes);
    return html("span", "", key, meaning);
  }));
}

// The panel in words, for those who cannot see it.
function told(panel) {
  const count = (mark) => panel.cells.filter((cell) => cell.mark === mark).length;
  const marks = Object.keys(MARKS).filter(count).map((mark) => `${count(mark)} ${mark}`);
  return [`${panel.title}: ${panel.cells.length - count("missing")} cells filled`, ...marks].join(", ");
}

function grid({ columns, rows }) {
  const down = Array.from({ length: columns + 1 }, (_, x) => `M${x * SIDE} 0v${rows * SIDE}`);
  const across = Array.from({ length: rows + 1 }, (_, y) => `M0 ${y * SIDE}h${columns * SIDE}`);
  return svg("path", { class: "grid", d: [...down, ...across].join("") });
}

function blocks(cells, className, fill) {
  if (!cells.length) return [];
  const inner = SIDE - 2;
  const d = cells.map(({ x, y }) => `M${x * SIDE + 1} ${y * SIDE + 1}h${inner}v${inner}h-${inner}z`).join("");
  return [svg("path", { class: className, d, ...(fill && { fill }) })];
}

// A dashed frame for what is missing, a cross for what is extra, a stroke for what is wrong.
function marked(cells, mark) {
  if (!cells.length) return [];
  const inner = SIDE - 4;
  const strokes = {
    missing: "",
    extra: `l${inner} ${inner}m0 -${inner}l-${inner} ${inner}`,
    wrong: `m0 ${inner}l${inner} -${inner}`,
  }[mark];
  const at = ({ x, y }) => `M${x * SIDE + 2} ${y * SIDE + 2}`;
  const d = cells.map((cell) => `${at(cell)}h${inner}v${inner}h-${inner}z${strokes}`).join("");
  return [svg("path", { class: mark, d })];
}

// Round line ends without a line, and a digit over each.
function discs(cells, { digit, colour }) {
  if (!cells.length) return [];
  const middle = (place) => place * SIDE + SIDE / 2;
  const digits = svg("text", {
    class: luminance(colour) > 0.18 ? "dark" : "light",
    x: cells.map(({ x }) => middle(x)).join(" "),
    y: cells.map(({ y }) => middle(y) + 4).join(" "),
  });
  digits.textContent = digit.repeat(cells.length);
  const d = cells.map(({ x, y }) => `M${middle(x)} ${middle(y)}h0`).join("");
  return [svg("path", { class: "disc", d, stroke: colour }), digits];
}

// Of a colour #rrggbb, from 0 to 1; from 0.18 on black is read better on it than white.
function luminance(colour) {
  const [red, green, blue] = [1, 3, 5].map((start) => (parseInt(colour.slice(start, start + 2), 16) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function svg(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function html(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}
