"use strict";

// Everything that agents and servers wrote enters the page as text, never as markup.

const POLL = 2000; // milliseconds
const state = { token: "", model: null, session: newId(), opened: false, request: null };

const byId = (id) => document.getElementById(id);

function make(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

// randomUUID is missing where the page does not come from localhost or over TLS
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return "page-" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (state.token) headers.Authorization = `Bearer ${state.token}`;
  const response = await fetch(path, { ...options, headers });
  byId("locked").hidden = response.status !== 401;
  if (!response.ok) {
    const body = await response.json().catch(() => null);
    throw new Error(body?.error?.message ?? `status ${response.status}`);
  }
  return response;
}

function facts(list, entries) {
  byId(list).replaceChildren(...entries.flatMap(([term, value, help = ""]) => {
    const name = make("dt", "", term);
    name.title = help;
    return [name, make("dd", "", value)];
  }));
}

function show(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.map(show).join(", ") || "none";
  return Object.entries(value).map(([key, inner]) => `${key} ${show(inner)}`).join(", ") || "none";
}

async function open() {
  const agent = await (await ask("v1/agent")).json();
  state.model = agent.agent;
  document.title = `${agent.agent}, colearn serve`;
  byId("name").textContent = agent.agent;
  byId("headline").textContent = `plays ${agent.task}, trained with ${agent.algorithm}`;
  const names = { task_settings: "task settings" };
  facts("card", Object.entries(agent)
    .filter(([key]) => key !== "agent")
    .map(([key, value]) => [names[key] ?? key, key === "window" && value === null ? "all" : show(value)]));
}

async function poll() {
  if (!document.hidden && byId("locked").hidden) {
    try {
      if (state.model === null) await open();
      const text = await (await ask("metrics")).text();
      facts("numbers", readMetrics(text));
    } catch (error) {
      byId("headline").textContent = state.model === null
        ? error.message : `${state.model} does not answer: ${error.message}`;
    }
  }
}

// Prometheus' text: a family's samples are summed over labels, a histogram is count and mean
function readMetrics(text) {
  const helps = new Map(), kinds = new Map(), sums = new Map();
  for (const line of text.split("\n")) {
    const comment = line.match(/^# (HELP|TYPE) (\S+) (.*)$/);
    if (comment) (comment[1] === "HELP" ? helps : kinds).set(comment[2], comment[3]);
    const sample = line.match(/^([\w:]+)(?:\{.*\})? (\S+)/);
    if (sample && !line.startsWith("#")) {
      sums.set(sample[1], (sums.get(sample[1]) ?? 0) + Number(sample[2]));
    }
  }
  // the client library adds the time at which each counter began
  const shown = [...kinds].filter(([name]) => !name.endsWith("_created"));
  return shown.map(([name, kind]) => {
    const count = sums.get(name + "_count") ?? 0;
    const value = kind !== "histogram" ? number(sums.get(name) ?? 0)
      : count ? `${number(sums.get(name + "_sum") / count)} (mean of ${number(count)})` : "-";
    const short = name.replace(/^colearn_/, "").replace(/_total$/, "").replaceAll("_", " ");
    return [short, value, helps.get(name) ?? ""];
  });
}

const number = (value) => Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(3)));

function bubble(kind, who, text) {
  byId("empty")?.remove();
  const cost = make("small", "");
  const pre = make("pre", "", text);
  const node = make("div", `said ${kind}`, make("h4", "", who, cost), pre);
  byId("talk").append(node);
  node.scrollIntoView({ block: "nearest" });
  return { node, pre, cost };
}

async function send(text) {
  bubble("user", "you", text);
  const answer = bubble("assistant", state.model ?? "agent", "");
  const started = performance.now();
  const since = () => ((performance.now() - started) / 1000).toFixed(2);
  state.request = new AbortController();
  busy(true);
  const body = {
    model: state.model, session_id: state.session, stream: true,
    messages: [{ role: "user", content: text }],
    stream_options: { include_usage: true },
  };
  if (byId("greedy").checked) body.temperature = 0;
  let first = null;
  try {
    const response = await ask("v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Session-Id": state.session },
      body: JSON.stringify(body),
      signal: state.request.signal,
    });
    state.opened = true;
    for await (const part of events(response.body)) {
      if (part.error) throw new Error(part.error.message);
      const grown = part.choices?.[0]?.delta?.content ?? "";
      if (grown) {
        first ??= since();
        answer.pre.textContent += grown;
        answer.node.scrollIntoView({ block: "end" });
      }
      const usage = part.usage;
      if (usage) {
        const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
        answer.cost.textContent = `${usage.completion_tokens} tokens, first after ${first ?? since()} s, `
          + `all after ${since()} s; ${usage.prompt_tokens - cached} of ${usage.prompt_tokens} read anew`;
      }
    }
  } catch (error) {
    const why = error.name === "AbortError" ? "stopped; the server keeps no unfinished turn" : error.message;
    answer.node.append(make("p", "note trouble", why));
  }
  busy(false);
}

function busy(on) {
  byId("send").disabled = on;
  byId("stop").hidden = !on;
}

async function* events(stream) {
  let rest = "";
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.replace(/^data: /, "");
      if (data !== "[DONE]" && block.startsWith("data: ")) yield JSON.parse(data);
    }
  }
}

async function anew() {
  state.request?.abort();
  if (state.opened) {
    // a session that stays behind is forgotten by the server in time
    ask(`v1/sessions/${state.session}`, { method: "DELETE" }).catch(() => undefined);
  }
  Object.assign(state, { session: newId(), opened: false });
  byId("talk").replaceChildren(make("p", "note", "A new conversation; the agent remembers nothing of the last."));
  byId("talk").firstChild.id = "empty";
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = byId("token").value;
  byId("locked").hidden = true;
  poll();
});
byId("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("text").value;
  if (byId("send").disabled || !text) return;
  byId("text").value = "";
  send(text);
});
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("say").requestSubmit();
});
byId("stop").addEventListener("click", () => state.request?.abort());
byId("anew").addEventListener("click", anew);

poll();
setInterval(poll, POLL);
