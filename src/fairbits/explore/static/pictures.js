"use strict";
// The twins of one person: a table coloured by score, and the scores in order. All text is set as text, never as markup.

const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};
const draw = (tag, attributes = {}, text = "") => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  return made;
};
const fixed = (value, digits = 3) => value.toFixed(digits).replace("-", "−");

// Between two colours of the scale; a decision threshold stands in its middle.
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const position = (score, setting, answer) => {
  if (setting.threshold !== null) {
    const t = setting.threshold;
    return score < t ? 0.5 * score / t : 0.5 + 0.5 * (score - t) / (1 - t);
  }
  return answer.high > answer.low ? (score - answer.low) / (answer.high - answer.low) : 0.5;
};
const colour = (place, scale) => {
  const at = Math.min(Math.max(place, 0), 1) * (scale.length - 1);
  const left = Math.min(Math.floor(at), scale.length - 2);
  const [a, b] = [rgb(scale[left]), rgb(scale[left + 1])];
  return `rgb(${a.map((part, i) => Math.round(part + (b[i] - part) * (at - left))).join(",")})`;
};

const MAX_FACETS = 8, MAX_SIDE = 60, MAX_NUMBERS = 600;

// The longest attribute across, the next one down, the shortest as separate tables; null where that cannot be read.
const layout = (axes) => {
  const order = axes.map((axis, i) => i).sort((a, b) => axes[a].values.length - axes[b].values.length || a - b);
  if (order.length > 3) return null;
  const [facet, row, column] = [...Array(3 - order.length).fill(null), ...order];
  const size = (i) => (i === null ? 1 : axes[i].values.length);
  if (size(facet) > MAX_FACETS || size(row) > MAX_SIDE || size(column) > MAX_SIDE) return null;
  const strides = axes.map((_, i) => axes.slice(i + 1).reduce((product, axis) => product * axis.values.length, 1));
  const twin = (f, r, c) => [[facet, f], [row, r], [column, c]].reduce((sum, [i, at]) => sum + (i === null ? 0 : at * strides[i]), 0);
  return { facet, row, column, size, twin };
};

const twinName = (setting, twin) => {
  const words = [];
  let rest = twin;
  for (const axis of [...setting.axes].reverse()) {
    words.unshift(axis.values[rest % axis.values.length]);
    rest = Math.floor(rest / axis.values.length);
  }
  return words.join(", ");
};

const twinWords = (setting, answer, twin) => {
  const score = answer.scores[twin];
  if (score === null) return `${twinName(setting, twin)}: cannot exist under the rules`;
  const of = answer.classes.length ? `, class ${answer.classes[twin] + 1} of ${answer.k}` : "";
  return `${twinName(setting, twin)}: ${fixed(score)}${of}`;
};

// Classes have numbers where one score tells them apart and the cells are large enough.
const numbered = (answer) => answer.classes.length > 0 && answer.scores.length <= MAX_NUMBERS;

const mapWords = (setting, answer) => {
  const words = ["One cell per twin, coloured by score" + (numbered(answer) ? "; the number is its ε-class, 1 the lowest." : ".")];
  if (setting.vector) words.push(`The score is the probability of ${setting.favourable}; classes and decisions are told apart by the probabilities of all classes.`);
  if (setting.threshold !== null) words.push("Thick lines separate decisions.");
  return [...words, "The ring marks the person's own values, where they are known."].join(" ");
};

const cellOf = (setting, answer, twin) => {
  const cell = make("td");
  const score = answer.scores[twin];
  cell.dataset.twin = twin;
  if (score === null) {
    cell.className = "gone";
    cell.append(make("span", { className: "hidden", textContent: "cannot exist" }));
    return cell;
  }
  const place = position(score, setting, answer);
  cell.style.backgroundColor = colour(place, setting.colours);
  cell.classList.toggle("deep", Math.abs(place - 0.5) > 0.27);
  const number = numbered(answer) ? String(answer.classes[twin] + 1) : "";
  cell.append(make("span", { textContent: number }), make("span", { className: "hidden", textContent: ` score ${fixed(score)}` }));
  return cell;
};

const heatMap = (setting, answer, own) => {
  const shape = layout(setting.axes);
  if (!shape) return null;
  const side = (twin) => (answer.scores[twin] === null ? 0 : answer.scores[twin] >= setting.threshold ? 1 : -1);
  const differs = (a, b) => setting.threshold !== null && side(a) * side(b) < 0;
  const { axes } = setting;
  const tables = [];
  for (let f = 0; f < shape.size(shape.facet); f += 1) {
    const table = make("table", { className: "map facet" });
    if (shape.facet !== null) table.append(make("caption", { textContent: `${axes[shape.facet].name}: ${axes[shape.facet].values[f]}` }));
    const heads = axes[shape.column].values.map((value) => make("th", { scope: "col", textContent: value, title: value }));
    table.append(make("thead", {}, make("tr", {}, make("td", { className: "corner" }), ...heads)));
    const body = make("tbody");
    for (let r = 0; r < shape.size(shape.row); r += 1) {
      const name = shape.row === null ? "score" : axes[shape.row].values[r];
      const line = make("tr", {}, make("th", { scope: "row", textContent: name, title: name }));
      for (let c = 0; c < shape.size(shape.column); c += 1) {
        const twin = shape.twin(f, r, c), cell = cellOf(setting, answer, twin);
        if (c + 1 < shape.size(shape.column)) cell.classList.toggle("right", differs(twin, shape.twin(f, r, c + 1)));
        if (r + 1 < shape.size(shape.row)) cell.classList.toggle("below", differs(twin, shape.twin(f, r + 1, c)));
        cell.classList.toggle("own", twin === own);
        line.append(cell);
      }
      body.append(line);
    }
    table.append(body);
    tables.push(table);
  }
  return make("div", { className: "facets" }, ...tables);
};

// All scores: in order, or along the values where one attribute is protected. Every other class is a band.
const staircase = (setting, answer) => {
  const one = setting.axes.length === 1;
  const there = answer.scores.map((score, twin) => ({ score, twin })).filter((point) => point.score !== null);
  if (!one) there.sort((a, b) => a.score - b.score);
  const [width, height, left, right, top, bottom] = [620, 300, 54, 612, 26, 262];
  const room = 0.05 * (answer.high - answer.low || 1);
  const [least, most] = setting.regression ? [answer.low - room, answer.high + room] : [-0.02, 1.02];
  const x = (i) => left + ((i + 0.5) / there.length) * (right - left);
  const y = (score) => bottom - ((score - least) / (most - least)) * (bottom - top);
  const words = one ? `Scores along ${setting.axes[0].name}` : `All ${there.length} scores in order`;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${words}: ${fixed(answer.low)} to ${fixed(answer.high)}` });
  const lows = [];
  for (const { score, twin } of there) if (answer.classes.length) lows[answer.classes[twin]] = Math.min(lows[answer.classes[twin]] ?? Infinity, score);
  lows.forEach((low, i) => {
    if (i % 2) return;
    const end = i + 1 < lows.length ? lows[i + 1] : answer.high;
    svg.append(draw("rect", { class: "band", x: left, width: right - left, y: y(end), height: Math.max(y(low) - y(end), 0.5) }));
  });
  for (let i = 0; i <= 4; i += 1) {
    const value = setting.regression ? answer.low + (i / 4) * (answer.high - answer.low) : i / 4;
    svg.append(draw("line", { class: "rule", x1: left, x2: right, y1: y(value), y2: y(value) }));
    svg.append(draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, setting.regression ? value.toPrecision(3) : fixed(value, 2)));
  }
  if (setting.threshold !== null) {
    svg.append(draw("line", { class: "threshold", x1: left, x2: right, y1: y(setting.threshold), y2: y(setting.threshold) }));
    svg.append(draw("text", { x: left + 3, y: y(setting.threshold) - 4 }, "decision"));
  }
  svg.append(draw("text", { x: left, y: 15 }, `score, in ${answer.k} class${answer.k > 1 ? "es" : ""}${answer.classes.length ? " (bands)" : ""}`));
  svg.append(draw("text", { x: (left + right) / 2, y: height - 14, "text-anchor": "middle" }, one ? setting.axes[0].name : `the ${there.length} twins, by score`));
  if (one) svg.append(draw("path", { class: "path", d: there.map(({ score }, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(score).toFixed(1)}`).join("") }));
  const radius = there.length > 300 ? 1.8 : 3.4;
  there.forEach(({ score, twin }, i) => {
    const dot = draw("circle", { class: setting.threshold !== null && score < setting.threshold ? "dot low" : "dot", cx: x(i).toFixed(1), cy: y(score).toFixed(1), r: radius });
    dot.dataset.twin = twin;
    svg.append(dot);
  });
  return svg;
};
