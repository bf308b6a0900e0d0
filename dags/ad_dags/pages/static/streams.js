// The page Streams: fetches the state of all jobs every few seconds and renders it.
import { followTheme, openOutside } from "./links.js";

const REFRESH_MS = 5000;
const PATIENCE_MS = 15000;
const SILENT_S = 60;
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 150, HEIGHT = 34;
/** The longest gap between two points that a line joins, in seconds, by span. */
const MAX_GAP_S = { hour: 90, day: 900 };
/** The shortest span of a chart, for a lake that was created moments ago. */
const LEAST_S = 600;
const SPAN_S = { hour: 3600, day: 86400 };
const DRIVER_TONES = { running: "good", starting: "warn", stopping: "warn", failed: "bad", unknown: "bad" };

const METRICS = [
  { label: "rows in", now: (r) => r.input_rows_per_s, past: (p) => p.input_rows_per_s, format: rate },
  { label: "rows processed", now: (r) => r.processed_rows_per_s, past: (p) => p.processed_rows_per_s, format: rate },
  { label: "batch time", now: (r) => (r.batch_id === null ? null : r.batch_ms / 1000), past: (p) => p.batch_s, format: duration },
  { label: "watermark lag", now: (r) => r.watermark_lag_s, past: (p) => p.watermark_lag_s, format: duration },
  { label: "in state", now: (r) => r.state_rows, past: (p) => p.state_rows, format: count, more: (r) => (r.state_bytes ? bytes(r.state_bytes) : "") },
  { label: "late, dropped", now: (r) => r.late_rows, past: (p) => p.late_rows, format: count, more: (r) => `since ${day(r.started_at)}` },
  { label: "backlog", now: (r) => r.backlog_records ?? r.backlog_commits ?? r.backlog_bytes, format: backlog, more: (r, now) => (r.caught_up_at ? `gone in ${duration(Math.max(0, -since(r.caught_up_at, now)))}` : "") },
];

let span = "hour";
let newest = 0;
let asOf = null;
let oldest = 0; // of all points, in seconds
const cards = new Map(); // by job

const byId = (id) => document.getElementById(id);

function make(tag, options = {}, ...children) {
  const { dataset, ...rest } = options;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, dataset ?? {});
  element.append(...children.filter((child) => child !== null));
  return element;
}

function count(value) {
  const style = value < 100000 ? {} : { notation: "compact", maximumFractionDigits: 1 };
  return new Intl.NumberFormat("en", { maximumFractionDigits: 0, ...style }).format(value);
}

function rate(value) {
  return `${value > 0 && value < 10 ? value.toFixed(1) : count(value)}/s`;
}

function bytes(value) {
  const step = value < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  const scaled = value / 1000 ** step;
  return `${scaled >= 100 || step === 0 ? scaled.toFixed(0) : scaled.toFixed(1)} ${["B", "kB", "MB", "GB", "TB"][step]}`;
}

function backlog(value, report) {
  if (report.backlog_records !== null) return `${count(value)} records`;
  return report.backlog_commits === null ? bytes(value) : `${count(value)} commits`;
}

/** A duration of `seconds` in its two largest units. */
function duration(seconds) {
  if (seconds < 0) return `${duration(-seconds)} ahead`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [d, h, m, s] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  if (d) return `${d} d ${h} h`;
  if (h) return `${h} h ${m} min`;
  return m ? `${m} min ${s} s` : `${s} s`;
}

const since = (time, now) => (now - new Date(time)) / 1000;
const day = (time) => `${new Date(time).toISOString().slice(5, 16).replace("T", " ")} UTC`;
const clock = (time) => new Date(time).toISOString().slice(11, 19);

const note = (tone, text) => make("p", { className: `note ${tone}`, textContent: text });

function tag(text, tone) {
  return make("span", { className: `tag ${tone}`, textContent: text });
}

function outside(text, path) {
  const link = make("a", { href: new URL(`${document.documentElement.dataset.root}../${path}`, document.baseURI).href, textContent: text });
  openOutside(link);
  return link;
}

function svgPath(kind, d) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("class", kind);
  path.setAttribute("d", d);
  return path;
}

/** `points` as pieces of a line, split where a value is missing or nothing was reported for a while. */
function pieces(points) {
  const found = [];
  let before = null;
  for (const point of points) {
    if (point[1] === null) { before = null; continue; }
    if (before === null || point[0] - before > MAX_GAP_S[span]) found.push([]);
    found.at(-1).push(point);
    before = point[0];
  }
  return found;
}

function chart(metric, part, now) {
  const points = part.trend.map((p) => [new Date(p.at) / 1000, metric.past(p)]);
  const known = points.filter(([, value]) => value !== null);
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "spark");
  const end = now / 1000, begin = Math.max(end - SPAN_S[span], Math.min(oldest, end - LEAST_S));
  const top = Math.max(...known.map(([, value]) => value), 0) || 1;
  const bottom = Math.min(...known.map(([, value]) => value), 0);
  const x = (at) => ((at - begin) / (end - begin)) * WIDTH;
  const y = (value) => HEIGHT - 2 - ((value - bottom) / (top - bottom)) * (HEIGHT - 5);
  svg.append(svgPath("base", `M0 ${y(0).toFixed(1)}H${WIDTH}`));
  for (const piece of pieces(points)) {
    const line = piece.map(([at, value]) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
    const ground = y(0).toFixed(1);
    svg.append(
      svgPath("area", `M${x(piece[0][0]).toFixed(1)} ${ground}L${line}V${ground}Z`),
      svgPath("line", `M${line}${piece.length === 1 ? "h.6" : ""}`),
    );
  }
  svg.addEventListener("mousemove", (event) => {
    if (!known.length) return;
    const box = svg.getBoundingClientRect();
    const at = begin + ((event.clientX - box.left) / box.width) * (end - begin);
    const near = known.reduce((best, point) => (Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best));
    showTip(event, `${clock(near[0] * 1000)} UTC: ${metric.format(near[1], part.report)}`);
  });
  svg.addEventListener("mouseleave", () => { byId("tip").hidden = true; });
  return svg;
}

function showTip(event, text) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.clientY + 14}px`;
}

function queryState(report, now) {
  if (report.state === "failed") return tag("failed", "bad");
  if (report.state === "stopped") return tag("stopped", "none");
  const silent = since(report.updated_at, now);
  return silent > SILENT_S ? tag(`no report for ${duration(silent)}`, "warn") : tag("running", "good");
}

function queryRow(part, now) {
  const report = part.report;
  const head = make("div", { className: "query" }, make("h3", { textContent: part.query }));
  if (!report) {
    head.append(tag("not started yet", "none"));
    return make("div", { className: "row" }, head, make("div", { className: "soft small", textContent: "It starts once the table that it reads exists." }));
  }
  head.append(queryState(report, now));
  head.append(make("div", { className: "soft small", textContent: report.batch_id === null ? "no batch yet" : `batch ${count(report.batch_id)}, ${clock(report.updated_at)} UTC` }));
  if (report.busy_since) head.append(make("div", { className: "soft small", textContent: `its batch runs for ${duration(since(report.busy_since, now))}: ${count(report.tasks_done)} of ${count(report.tasks)} tasks` }));
  const cells = METRICS.map((metric) => {
    const value = metric.now(report);
    const shown = value === null || value === undefined ? "–" : metric.format(value, report);
    const cell = make("div", { className: "metric" }, make("div", { className: "label", textContent: metric.label }), make("div", { className: "value", textContent: shown, title: value === null ? "unknown" : String(value) }));
    if (metric.past) cell.append(chart(metric, part, now));
    const more = metric.more?.(report, now);
    if (more) cell.append(make("div", { className: "soft small", textContent: more }));
    return cell;
  });
  const row = make("div", { className: "row", dataset: { query: part.query } }, head, make("div", { className: "metrics" }, ...cells));
  if (report.last_error) row.append(make("pre", { className: "error", textContent: report.last_error }));
  return row;
}

/** The card of a job, without figures: `update` fills them in. */
function jobCard({ job, dag }, deployDag) {
  const state = tag("", "none");
  const facts = make("span", { className: "soft small grow" });
  const logButton = make("button", { type: "button", className: "link" });
  const head = make("div", { className: "job" },
    make("h2", { textContent: job }), state, facts,
    outside("Supervision", `dags/${dag}`), outside("Deploy", `dags/${deployDag}`), logButton);
  const body = make("div");
  const card = { job, element: make("section", { className: "card", dataset: { job } }, head, body), state, facts, logButton, body, log: null };
  logButton.addEventListener("click", () => toggleLog(card));
  labelLog(card);
  return card;
}

/** Shows `job` in its card. Links and the button stay: replacing one would lose a click between press and release, and the focus. */
function update(card, job, deployDag, now) {
  const driver = job.driver;
  const facts = [];
  if (job.deployment) facts.push(`release ${job.deployment.version}, deployed ${duration(since(job.deployment.deployed_at, now))} ago`);
  else facts.push("no release deployed: it runs the installed code");
  if (driver.process_id) facts.push(`process ${driver.process_id}`);
  if (driver.since) facts.push(`${driver.state} for ${duration(since(driver.since, now))}`);
  card.facts.textContent = facts.join(" · ");
  const tone = driver.state === "stopped" ? (job.wanted?.state === "running" ? "bad" : "none") : DRIVER_TONES[driver.state] ?? "none";
  const state = tag(driver.state, tone);
  card.state.replaceWith(state);
  card.state = state;
  const notes = [];
  if (job.wanted?.state === "failed") notes.push(note("bad", `Restarts did not help: ${job.wanted.why}. Once the cause is gone, trigger ${job.dag}.`));
  else if (job.wanted && job.wanted.state !== "running") notes.push(note("soft", job.wanted.until ? `Paused until ${clock(job.wanted.until)} UTC at the latest: ${job.wanted.why}` : `Stopped on purpose: ${job.wanted.why}`));
  if (!job.wanted) notes.push(note("soft", `It has never been started: trigger ${deployDag}.`));
  if (driver.state === "unknown" || driver.state === "failed") notes.push(note("bad", driver.detail));
  for (const problem of job.problems) notes.push(note("bad", problem));
  card.body.replaceChildren(...notes, ...job.queries.map((part) => queryRow(part, now)));
}

async function ask(path) {
  const answer = await fetch(path, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(PATIENCE_MS) });
  if (answer.ok) return answer;
  const detail = await answer.json().then((body) => body.detail, () => answer.statusText);
  throw new Error(answer.status === 401 ? "your session has expired: reload the page" : detail);
}

function labelLog(card) {
  card.logButton.textContent = card.log ? "Hide the log" : "Driver’s log";
  card.logButton.setAttribute("aria-expanded", String(card.log !== null));
}

function toggleLog(card) {
  if (card.log) {
    card.log.remove();
    card.log = null;
  } else {
    card.log = make("pre", { className: "log", tabIndex: 0, textContent: "reading the log …" });
    card.element.append(card.log);
    readLog(card);
  }
  labelLog(card);
}

async function readLog({ job, log: panel }) {
  const isAtEnd = panel.scrollTop + panel.clientHeight >= panel.scrollHeight - 20;
  try {
    const log = await (await ask(`api/streams/${job}/log`)).text();
    panel.textContent = log || "the log is empty";
  } catch (error) {
    panel.textContent = `the log cannot be read: ${error.message}`;
  }
  if (isAtEnd) panel.scrollTop = panel.scrollHeight;
}

/** Shows `elements` in this order. Nothing moves if they are: moving an element loses the focus in it, and how far it was scrolled. */
function arrange(elements) {
  const shown = [...byId("jobs").children];
  if (shown.length !== elements.length || shown.some((element, index) => element !== elements[index])) byId("jobs").replaceChildren(...elements);
}

async function refresh() {
  const turn = ++newest;
  try {
    const page = await (await ask(`api/streams?span=${span}`)).json();
    if (turn !== newest) return;
    const now = new Date(page.at);
    byId("lake").textContent = page.lake;
    const begins = page.jobs.flatMap((job) => job.queries.flatMap((part) => part.trend.slice(0, 1).map((p) => new Date(p.at) / 1000)));
    oldest = Math.min(...begins, now / 1000);
    const shown = page.jobs.map((job) => {
      if (!cards.has(job.job)) cards.set(job.job, jobCard(job, page.deploy_dag));
      const card = cards.get(job.job);
      update(card, job, page.deploy_dag, now);
      return card;
    });
    arrange(shown.map((card) => card.element));
    byId("problem").hidden = true;
    asOf = Date.now();
    showAge();
    await Promise.all(shown.filter((card) => card.log).map(readLog));
  } catch (error) {
    if (turn !== newest) return;
    byId("problem").textContent = `This page may be out of date: ${error.message}`;
    byId("problem").hidden = false;
  }
}

function showAge() {
  if (asOf !== null) byId("fresh").textContent = `as of ${duration(Math.round((Date.now() - asOf) / 1000)).replace(".0", "")} ago`;
}

for (const button of document.querySelectorAll("[data-span]")) {
  button.addEventListener("click", () => {
    span = button.dataset.span;
    for (const other of document.querySelectorAll("[data-span]")) other.setAttribute("aria-pressed", String(other === button));
    refresh();
  });
}
followTheme(document);
setInterval(showAge, 1000);
setInterval(() => { if (!document.hidden) refresh(); }, REFRESH_MS);
refresh();
