// The page: what is chosen, what is asked, what is shown. Questions never queue: the newest replaces those that wait.

const $ = (id) => document.getElementById(id);
const state = { setting: null, found: null, first: null, codes: [], held: new Map(), layer: null, answer: null, fields: [], dots: [] };

const dark = () => (document.documentElement.dataset.look ? document.documentElement.dataset.look === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
const nameLook = () => { $("look").textContent = dark() ? "Light" : "Dark"; };
$("look").addEventListener("click", () => { document.documentElement.dataset.look = dark() ? "light" : "dark"; nameLook(); });
nameLook();

const complain = (sentence) => { $("fault").textContent = sentence; $("fault").hidden = !sentence; };
let busy = false, waiting = false;
const ask = async () => {
  if (busy) { waiting = true; return; }
  busy = true;
  do {
    waiting = false;
    const hold = [...state.held].map(([key, value]) => ({ layer: Number(key.split(":")[0]), neuron: Number(key.split(":")[1]), at: value }));
    try {
      const answer = await asked("/answer", {}, { codes: state.codes, hold, layer: state.layer, guard: $("guard").value ? Number($("guard").value) : null });
      complain("");
      show(answer);
    } catch (error) {
      complain(error.message);
    }
  } while (waiting);
  busy = false;
};

const count = (number) => number.toLocaleString("en");
const arrow = (before, after) => (before === after ? after : `${before} → ${after}`);

const show = (answer) => {
  state.answer = answer;
  const { setting } = state;
  const changed = state.codes.some((code, i) => code !== state.found.codes[i]);
  if (!changed && !state.held.size && !$("guard").value) state.first = { k: answer.k };
  $("k").textContent = answer.k;
  const moved = changed || state.held.size || $("guard").value;
  $("k-was").textContent = moved && state.first && state.first.k !== answer.k ? `found with ${state.first.k}` : "";
  $("bits").textContent = `${fixed(answer.bits, 2)} bits`;
  $("bits-of").textContent = `of ${fixed(setting.limit, 2)} (Q1 ${fixed(answer.q_1, 2)})`;
  $("span").textContent = fixed(answer.span);
  $("decision").textContent = setting.regression ? "" : `${count(answer.favourable)} of ${count(answer.twins)}`;
  $("decision-of").textContent = setting.regression ? "" : "twins favoured";
  $("flips").hidden = !answer.flips;
  $("proof").textContent = answer.proof;
  $("proof").hidden = !answer.proof;
  $("low").textContent = fixed(answer.low);
  $("high").textContent = fixed(answer.high);
  $("worst").textContent = answer.worst;
  $("best").textContent = answer.best;
  $("distance").textContent = answer.distance === null ? "Changed by hand: how far this person is from a real row, the served explorer says." : `This person is ${answer.distance}.`;
  $("as-found").disabled = !changed;
  $("reset").disabled = !moved;
  state.fields.forEach(({ field, show: showCode }, i) => {
    showCode(state.codes[i]);
    field.classList.toggle("changed", state.codes[i] !== state.found.codes[i]);
  });
  const map = heatMap(setting, answer, changed ? null : state.found.own);
  $("map").replaceChildren(...(map ? [map] : []));
  $("map-words").hidden = !map;
  $("map-words").textContent = mapWords(setting, answer);
  $("stairs").replaceChildren(staircase(setting, answer));
  const gone = setting.m - answer.twins;
  const notes = [...answer.notes, ...(gone ? [`${count(gone)} of ${count(setting.m)} twins cannot exist under the rules and are left out.`] : [])];
  $("notes").replaceChildren(...notes.map((note) => make("p", { className: "note", textContent: note })));
  showNeurons(answer);
};

const showNeurons = (answer) => {
  const { setting } = state;
  if (!setting.layers.length) return;
  const layer = setting.layers[state.layer - 1];
  shade(state.dots, layer, answer.spread, state.held);
  $("release").disabled = !state.held.size;
  $("held").replaceChildren(...[...state.held].map(([key, value]) => {
    const [number, neuron] = key.split(":");
    const release = make("button", { type: "button", textContent: `layer ${number} neuron ${neuron} at ${holdName(value)} ✕` });
    release.setAttribute("aria-label", `release neuron ${neuron} of layer ${number}`);
    release.addEventListener("click", () => { state.held.delete(key); ask(); });
    return make("li", {}, release);
  }));
  const { before } = answer;
  if (!before) { $("effect").textContent = `No neuron is held${setting.embedded ? "" : " and the guard is off"}: the model is as it is.`; return; }
  const percent = (share) => `${fixed(100 * share, 1)} %`;
  const accuracy = answer.accuracy === null ? "" : ` ${setting.regression ? "Variance explained" : "Accuracy"} on ${count(setting.judged)} rows: ${arrow(percent(before.accuracy), percent(answer.accuracy))}.`;
  $("effect").textContent = `k ${arrow(before.k, answer.k)}, ${arrow(fixed(before.bits, 2), fixed(answer.bits, 2))} bits, span ${arrow(fixed(before.high - before.low), fixed(answer.span))}.${accuracy}`;
};

const take = (person) => {
  state.found = person;
  state.first = null;
  state.codes = [...person.codes];
  ask();
};
const toggle = (neuron) => {
  const key = `${state.layer}:${neuron}`, layer = state.setting.layers[state.layer - 1];
  const wished = possibleHold(layer, neuron, $("hold-at").value);
  if (state.held.has(key)) state.held.delete(key);
  else if (wished) state.held.set(key, wished);
  ask().then(() => describe(neuron));
};
const describe = (neuron) => {
  const layer = state.setting.layers[state.layer - 1];
  $("neuron").textContent = neuronWords(layer, neuron, state.answer?.spread, state.held.get(`${layer.layer}:${neuron}`));
};
const chooseLayer = (number) => {
  state.layer = number;
  const layer = state.setting.layers[number - 1];
  state.dots = dotsOf(layer, toggle, describe);
  $("dots").replaceChildren(...state.dots);
  $("neuron").textContent = layer.width > layer.values[0].length ? `The first ${layer.values[0].length} of ${count(layer.width)} neurons.` : "\u00a0";
  [...$("layers").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i + 1 === number)));
};

const point = (twin) => {
  for (const old of document.querySelectorAll(".at")) old.classList.remove("at");
  if (twin === undefined || !state.answer) return;
  for (const one of document.querySelectorAll(`[data-twin="${Number(twin)}"]`)) one.classList.add("at");
  $("cell").textContent = twinWords(state.setting, state.answer, Number(twin));
};
for (const id of ["map", "stairs"]) for (const event of ["mouseover", "click"]) $(id).addEventListener(event, (happened) => point(happened.target.closest("[data-twin]")?.dataset.twin));

const fillNeurons = (setting) => {
  $("neurons-lead").textContent = setting.no_layers || "Each circle is a neuron, the stronger its colour, the more its output differs between the twins of this person. A dashed one puts out the same for every row of the table. Choose one to hold it at a value, whatever the person.";
  if (!setting.layers.length) return;
  $("switchboard").hidden = false;
  $("layers").append(...setting.layers.map((layer) => {
    const button = make("button", { type: "button", className: layer.suspect ? "suspect" : "", textContent: `layer ${layer.layer}${layer.suspect ? " (suspect)" : ""}`, title: `${layer.width} neurons` });
    button.addEventListener("click", () => { chooseLayer(layer.layer); ask(); });
    return button;
  }));
  $("hold-at").append(...HOLDS.map(([value, textContent]) => make("option", { value, textContent })));
  chooseLayer((setting.layers.find((layer) => layer.suspect) ?? setting.layers[0]).layer);
};

const fillPeople = (people) => {
  for (const [real, label] of [[true, "Rows of the table"], [false, "Found by the search"]]) {
    const group = make("optgroup", { label });
    people.forEach((person, i) => {
      if (person.real === real) group.append(make("option", { value: String(i), textContent: `${person.k === null ? "" : `k ${person.k}: `}${person.name}` }));
    });
    if (group.children.length) $("case").append(group);
  }
  $("case").addEventListener("change", () => take(people[Number($("case").value)]));
};

const takeRow = async (number) => {
  try {
    const person = await asked("/row", { number });
    $("row").value = number;
    take(person);
  } catch (error) {
    complain(error.message);
  }
};

const begin = async () => {
  const setting = state.setting = await asked("/start", {});
  document.title = `${setting.subject} · fairbits explore`;
  $("subject").textContent = setting.subject;
  $("quality").textContent = setting.quality.join(" ");
  state.fields = setting.attributes.map((attribute, i) => fieldOf(attribute, i, (code) => { state.codes[i] = code; ask(); }));
  $("fields").append(...state.fields.map(({ field }) => field));
  fillPeople(setting.people);
  fillNeurons(setting);
  $("row").max = setting.rows;
  $("row-form").hidden = !setting.rows;
  $("guarding").hidden = setting.embedded;
  $("row-form").addEventListener("submit", (event) => { event.preventDefault(); takeRow($("row").value); });
  $("any-row").addEventListener("click", () => takeRow(1 + Math.floor(Math.random() * setting.rows)));
  $("as-found").addEventListener("click", () => { state.codes = [...state.found.codes]; ask(); });
  $("guard").addEventListener("change", ask);
  $("release").addEventListener("click", () => { state.held.clear(); ask(); });
  $("reset").addEventListener("click", () => { state.held.clear(); $("guard").value = ""; state.codes = [...state.found.codes]; ask(); });
  take(setting.people[0]);
};
begin().catch((error) => complain(error.message));
