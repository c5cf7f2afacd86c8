// The neurons of a layer as switches: shaded by how much they differ between this person's twins, crossed out when held.

const HOLDS = [["zero", "0"], ["min", "its least"], ["mean", "its mean"], ["max", "its most"]];
const holdName = (at) => HOLDS.find(([name]) => name === at)[1];

const neuronWords = (layer, neuron, spread, at) => {
  const values = HOLDS.map((_, i) => layer.values[i][neuron]);
  const here = spread ? `${spread[0][neuron].toPrecision(3)} to ${spread[1][neuron].toPrecision(3)} over these twins; ` : "";
  const acd = layer.acd && layer.acd[neuron] !== null ? `; ACD ${layer.acd[neuron] > 0 ? "+" : ""}${fixed(layer.acd[neuron])}` : "";
  const still = values[1] === values[3] ? " It never moves." : "";
  const held = at ? ` Held at ${values[HOLDS.findIndex(([name]) => name === at)].toPrecision(3)}.` : "";
  return `Layer ${layer.layer}, neuron ${neuron}: ${here}${values[1].toPrecision(3)} to ${values[3].toPrecision(3)}, mean ${values[2].toPrecision(3)}, over the table${acd}.${still}${held}`;
};

// The wished value where the neuron can put it out, else the first that it can; null where there is none.
const possibleHold = (layer, neuron, wished) => {
  const able = HOLDS.filter((_, i) => layer.possible[i][neuron]).map(([name]) => name);
  return able.includes(wished) ? wished : able[0] ?? null;
};

const dotsOf = (layer, toggled, described) => layer.values[0].map((_, neuron) => {
  const dot = make("button", { type: "button", textContent: String(neuron) }, make("i"));
  dot.classList.toggle("still", layer.values[1][neuron] === layer.values[3][neuron]);
  dot.addEventListener("click", () => toggled(neuron));
  for (const event of ["mouseenter", "focus"]) dot.addEventListener(event, () => described(neuron));
  return dot;
});

const shade = (dots, layer, spread, held) => {
  const widths = spread ? spread[1].map((most, i) => most - spread[0][i]) : [];
  const widest = Math.max(...widths, 1e-12);
  dots.forEach((dot, neuron) => {
    const at = held.get(`${layer.layer}:${neuron}`);
    dot.setAttribute("aria-pressed", String(Boolean(at)));
    dot.setAttribute("aria-label", `neuron ${neuron}${at ? `, held at ${holdName(at)}` : ""}`);
    dot.querySelector("i").style.opacity = spread ? String(0.62 * widths[neuron] / widest) : "0";
  });
};
