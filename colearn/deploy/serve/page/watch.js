import { drawWorld, readWorld } from "./world.js";

// Everything that agents, tasks and servers wrote enters the page as text, never as markup.

const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c8c8c"];
const seat = new URLSearchParams(location.search).get("seat");
const play = { agents: {}, episodes: [], retries: 0, over: false, connected: false };
let chosen = null;
let stale = { page: true, turns: new Set(), all: true };
let turnNodes = [];
let worldNow = { scene: null, node: null };

const byId = (id) => document.getElementById(id);

function make(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null));
  return node;
}

const number = (value) =>
  typeof value === "number" ? String(Math.round(value * 1000) / 1000) : "-";

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// what the person's own seat was paid, where the task pays seats; null elsewhere
function ownReward(episode) {
  const paid = episode.turns.map((turn) => turn.locals?.[seat]).filter((value) => value !== undefined);
  return seat === null || !paid.length ? null : paid.reduce((sum, value) => sum + value, 0);
}

function settings(entries) {
  return Object.entries(entries).map(([name, value]) =>
    make("span", "setting", make("b", "", name), " " + (typeof value === "number" ? number(value) : value)));
}

function episodeOf(event) {
  return play.episodes[event.episode];
}

function turnOf(episode, turn) {
  episode.turns[turn] ??= { observations: {}, actions: {}, retries: [], reward: null, after: null };
  return episode.turns[turn];
}

const takers = {
  titled(event) {
    document.title = `colearn play ${event.title}`;
    byId("title").textContent = event.title;
  },
  planned(event) {
    play.agents = event.agents;
    play.episodes = event.items.map((item, index) =>
      ({ index, item, state: "waiting", turns: [], scene: null, rewards: [] }));
    byId("episodes").replaceChildren(...play.episodes.map(listEntry));
  },
  started(event) {
    episodeOf(event).state = "playing";
    const held = seat !== null && chosen !== null;
    if (chosen === null || (byId("follow").checked && !held)) choose(event.episode);
  },
  observed(event) {
    const episode = episodeOf(event);
    episode.scene = { world: readWorld(event.world), picture: event.picture };
    if (event.turn > 0) turnOf(episode, event.turn - 1).after = episode.scene;
    if (Object.keys(event.observations).length) {
      turnOf(episode, event.turn).observations = event.observations;
    }
  },
  asked(event) {
    turnOf(episodeOf(event), event.turn).asked ??= new Set();
    turnOf(episodeOf(event), event.turn).asked.add(event.agent);
  },
  retried(event) {
    play.retries += 1;
    turnOf(episodeOf(event), event.turn).retries.push(event);
  },
  acted(event) {
    turnOf(episodeOf(event), event.turn).actions[event.agent] = event;
  },
  stepped(event) {
    const turn = turnOf(episodeOf(event), event.turn);
    turn.reward = event.reward;
    turn.locals = event.local_rewards;
    episodeOf(event).rewards[event.turn] = event.reward;
  },
  ended(event) {
    Object.assign(episodeOf(event), { state: "played", return: event.return, metrics: event.metrics });
  },
  lost(event) {
    Object.assign(episodeOf(event), { state: "lost", loss: event });
  },
  finished(event) {
    play.over = true;
    play.metrics = event.metrics;
  },
};

function take(event) {
  takers[event.kind]?.(event);
  stale.page = true;
  if (event.episode === chosen && event.turn !== undefined) {
    stale.turns.add(event.turn);
    if (event.kind === "observed") stale.turns.add(event.turn - 1);
  }
  if (event.episode !== undefined) stale.turns.add("list:" + event.episode);
  draw.wanted ??= requestAnimationFrame(draw);
}

function choose(index) {
  chosen = index;
  stale.all = true;
  draw.wanted ??= requestAnimationFrame(draw);
}

function listEntry(episode) {
  const button = make("button");
  button.type = "button";
  button.addEventListener("click", () => {
    byId("follow").checked = false;
    choose(episode.index);
  });
  episode.button = button;
  fillEntry(episode);
  return make("li", "", button);
}

function fillEntry(episode) {
  const told = { waiting: "waiting", playing: `turn ${Math.max(1, episode.turns.length)}`, lost: "lost" };
  const own = ownReward(episode);
  const result = own === null ? number(episode.return) : `own ${number(own)}`;
  episode.button.className = episode.state;
  episode.button.title = episode.item;
  episode.button.replaceChildren(
    `${episode.index} ${shortItem(episode.item)}`,
    make("small", "", told[episode.state] ?? result));
}

// a dataclass item such as StringItem(text='ICML') is told apart by its content
function shortItem(item) {
  const inner = item.match(/^\w+\((?:\w+=)?(.*)\)$/s);
  const text = (inner ? inner[1] : item).replace(/\s+/g, " ");
  return text.length > 24 ? text.slice(0, 23) + "\u2026" : text;
}

function draw() {
  draw.wanted = undefined;
  for (const mark of stale.turns) {
    if (typeof mark === "string") fillEntry(play.episodes[Number(mark.slice(5))]);
  }
  for (const episode of play.episodes) {
    episode.button.setAttribute("aria-pressed", String(episode.index === chosen));
  }
  drawHeadline();
  drawResult();
  drawEpisode();
  stale = { page: false, turns: new Set(), all: false };
}

function drawHeadline() {
  const count = (state) => play.episodes.filter((episode) => episode.state === state).length;
  const played = play.episodes.filter((e) => e.state === "played");
  const returns = played.map((e) => e.return);
  const own = played.map(ownReward).filter((value) => value !== null);
  const parts = [
    `${count("played")} of ${play.episodes.length} episodes played`,
    count("playing") ? `${count("playing")} under way` : "",
    count("lost") ? `${count("lost")} lost` : "",
    play.retries ? `${play.retries} retries` : "",
    own.length ? `own reward ${number(mean(own))} an episode`
      : returns.length ? `mean return ${number(mean(returns))}` : "",
    play.over ? "the play is over" : play.connected ? "" : "not connected, trying again",
  ];
  byId("headline").textContent = parts.filter(Boolean).join("; ");
}

function drawResult() {
  byId("result").hidden = !play.over;
  if (!play.over) return;
  byId("metrics").replaceChildren(...settings(play.metrics));
  const lost = play.episodes.filter((episode) => episode.state === "lost").length;
  byId("result-note").hidden = !lost;
  byId("result-note").textContent = lost ? `Means over the episodes that were not lost (${lost} were).` : "";
}

function drawEpisode() {
  const episode = play.episodes[chosen];
  const card = byId("episode");
  card.hidden = !episode;
  if (!episode) return;
  if (stale.all) turnNodes = [];
  episode.turns.forEach((turn, index) => {
    if (!turnNodes[index] || stale.turns.has(index)) turnNodes[index] = drawTurn(turn, index, episode);
  });
  const told = { waiting: "waiting", playing: "under way", played: "played", lost: "lost" };
  const own = ownReward(episode);
  const facts = episode.state === "played"
    ? settings({ ...(own === null ? {} : { "own reward": own }), return: episode.return, ...episode.metrics })
    : own !== null ? settings({ "own reward so far": own })
    : episode.rewards.length ? settings({ "return so far": episode.rewards.reduce((a, b) => a + b, 0) }) : [];
  const parts = [
    make("h2", "", `Episode ${episode.index}`,
      make("small", "", [episode.item, told[episode.state]].filter(Boolean).join(", "))),
    make("div", "", ...facts),
    episode.loss
      ? make("p", "lossline", `Lost in turn ${episode.loss.turn + 1}: ${episode.loss.reason}`)
      : null,
    seat !== null && episode.state in { played: 1, lost: 1 } ? nextButton(episode) : null,
    drawWorldNow(episode.scene),
    ...turnNodes,
  ];
  card.replaceChildren(...parts.filter(Boolean));
}

// a person reads what the hand was before the next one takes its place
function nextButton(episode) {
  const next = play.episodes.find((other) => other.index > episode.index && other.state !== "waiting");
  if (!next) return play.over ? null : make("p", "note", "the next one starts in a moment");
  const button = make("button", "next", "next");
  button.type = "button";
  button.addEventListener("click", () => choose(next.index));
  return button;
}

// drawn anew only where it changed: a world may have many cells
function drawWorldNow(scene) {
  if (worldNow.scene !== scene) worldNow = { scene, node: drawScene(scene) };
  return worldNow.node && make("div", "now", make("h4", "", "The world now"), worldNow.node);
}

function drawScene(scene) {
  if (scene?.world) return drawWorld(scene.world, { agents: Object.keys(play.agents), colours: COLOURS });
  return scene?.picture ? make("pre", "picture", scene.picture) : null;
}

function drawTurn(turn, index, episode) {
  const names = Object.keys(play.agents);
  const columns = names
    .filter((name) => name in turn.observations)
    .map((name) => drawAgent(turn, name, names.indexOf(name), episode));
  const reward = turn.reward === null ? "" : `reward ${number(turn.reward)}`;
  const own = Object.entries(turn.locals ?? {}).map(([name, value]) => `${name} ${number(value)}`).join(", ");
  const after = index < episode.turns.length - 1 ? drawScene(turn.after) : null;
  const world = after && make("details", "", make("summary", "", "the world after this turn"), after);
  return make("div", "turn",
    make("h3", "", `Turn ${index + 1}`, make("small", "", [reward, own].filter(Boolean).join("; "))),
    columns.length ? make("div", "agents", ...columns) : make("p", "thinking", turn.reward === null ? "others act" : "others acted"),
    world);
}

function drawAgent(turn, name, seat, episode) {
  const action = turn.actions[name];
  const cost = action
    ? `${number(action.seconds)} s` + (action.tokens === null ? "" : `, ${action.tokens} tokens`)
    : "";
  const failures = turn.retries
    .filter((event) => event.agent === name)
    .map((event) => make("p", "trouble", `asked again: ${event.reason}`));
  const given = episode.state === "lost" ? "no answer" : "acting \u2026";
  const mine = !action && turn.asked?.has(name) && episode.state === "playing";
  const node = make("div", "agent",
    make("h4", "", make("span", "swatch"), name, make("small", "", cost)),
    make("pre", "observation", turn.observations[name]),
    ...failures,
    action && action.text ? make("pre", "action", action.text)
      : mine ? answerForm(name, episode)
      : make("p", "thinking", action ? "an empty answer" : given));
  node.style.setProperty("--tint", COLOURS[seat % COLOURS.length]);
  return node;
}

// a person's seat: the form is made once a turn, so that drawing anew keeps what is being written
function answerForm(name, episode) {
  const place = `${episode.index}/${episode.turns.length}/${name}`;
  if (answerForm.place === place) return answerForm.node;
  const words = make("textarea");
  words.rows = 2;
  words.setAttribute("aria-label", `what ${name} says`);
  const send = make("button", "", "say it");
  send.type = "submit";
  const trouble = make("p", "trouble");
  trouble.setAttribute("role", "alert");
  const form = make("form", "answer", words, send, trouble);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      const answer = await fetch("/say", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ agent: name, episode: episode.index, text: words.value }),
      });
      trouble.textContent = answer.ok ? "" : "nobody waits for this answer";
      send.disabled = answer.ok;
    } catch {
      trouble.textContent = "the play cannot be reached";
      send.disabled = false;
    }
  });
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  answerForm.place = place;
  answerForm.node = form;
  return form;
}

// a person's page moves on by its button alone
byId("follow").parentElement.hidden = seat !== null;

const source = new EventSource("/events" + (seat === null ? "" : `?seat=${encodeURIComponent(seat)}`));
source.addEventListener("open", () => { play.connected = true; draw.wanted ??= requestAnimationFrame(draw); });
source.addEventListener("error", () => { play.connected = false; draw.wanted ??= requestAnimationFrame(draw); });
source.addEventListener("message", (message) => take(JSON.parse(message.data)));
source.addEventListener("over", () => source.close());
