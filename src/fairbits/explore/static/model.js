// The model inside the page: scores all twins of a person and sorts them into classes, to the bit as the engine does.

const F = Math.fround;
const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array };
const unpacked = ({ kind, bytes }) => new ARRAYS[kind](Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0)).buffer);
const embedded = JSON.parse(document.getElementById("model").textContent, (_, value) => (value?.bytes === undefined ? value : unpacked(value)));

// x · y + z rounded once. A double holds the product exactly; rounding the sum twice is wrong only where it lies in the
// middle between two float32 numbers, and then what the double lost decides.
const fma = (x, y, z) => {
  const product = x * y, sum = product + z, near = F(sum), other = 2 * sum - near;
  if (other === near || F(other) !== other) return near;
  const back = sum - product, lost = (product - (sum - back)) + (z - back);
  return lost === 0 ? near : lost > 0 ? Math.max(near, other) : Math.min(near, other);
};

// The engine's own exponential and activations (engine/kernels/lanes.py), operation by operation.
const [LOG2_E, LN2_HIGH, LN2_LOW, SQRT_HALF, ERFC_SCALE, CUBIC, GELU_SCALE] = [1.44269504088896341, -0.693359375, 2.12194440e-4, 0.70710678118654752, 0.4, 0.044715, 2 * 0.79788456080286536].map(F);
const EXP = [1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1].map(F);
const ERFC = [-0.2002598884, 0.7091499596, -0.3709122098, 0.468277612, 0.1618221857, 0.2319223132].map(F);
const polynomial = (x, terms) => terms.slice(2).reduce((sum, term) => fma(sum, x, term), fma(x, terms[0], terms[1]));
const exp = (given) => {
  const x = Math.min(Math.max(given, -87), 88), n = Math.floor(fma(x, LOG2_E, 0.5));
  const r = fma(n, LN2_LOW, fma(n, LN2_HIGH, x));
  return F(fma(polynomial(r, EXP), F(r * r), F(r + 1)) * 2 ** n);
};
const sigmoid = (x) => F(1 / F(exp(-x) + 1));
const CURVES = {
  3: (x) => { const e = exp(F(Math.abs(x) * -2)), size = F(F(1 - e) / F(e + 1)); return x > 0 ? size : -size; },
  4: sigmoid,
  5: (x) => {
    const u = F(Math.abs(x) * SQRT_HALF), t = F(1 / fma(u, ERFC_SCALE, 1));
    return F(Math.max(x, 0) - F(F(Math.abs(x) * 0.5) * F(F(polynomial(t, ERFC) * t) * exp(-F(u * u)))));
  },
  6: (x) => F(x * sigmoid(F(F(fma(F(x * x), CUBIC, 1) * x) * GELU_SCALE))),
  7: (x, alpha) => (x > 0 ? x : F(F(exp(x) - 1) * alpha)),
};
const leaky = (x, slope) => (x > 0 ? x : F(x * slope));

// A layer, in the engine's order of additions: four outputs at a time, of those left over even and odd inputs apart.
const dense = (source, weights, from, biases, first, inputs, outputs, slope) => {
  const target = new Float32Array(outputs), whole = outputs - (outputs % 4);
  for (let output = 0; output < outputs; output += 1) {
    let even = biases[first + output], odd = 0;
    for (let i = 0, w = from + output; i < inputs; i += 1, w += outputs) {
      if (output < whole || i % 2 === 0) even = fma(source[i], weights[w], even);
      else odd = fma(source[i], weights[w], odd);
    }
    target[output] = leaky(output < whole ? even : F(even + odd), slope);
  }
  return target;
};

const networkScores = (net, codes) => {
  const h = net.widths[0], numeric = net.columns.length - net.lookup_sizes.length, m = net.twins.length / h;
  const code = (j) => F(codes[net.columns[j]] - net.shifts[net.columns[j]]);
  const base = dense(Array.from({ length: numeric }, (_, j) => code(j)), net.numeric_slopes, 0, net.bias, 0, numeric, h, 1);
  const tables = net.table_starts.length, even = new Float32Array(h), odd = new Float32Array(h);
  for (let table = 0; table < tables; table += 1) {
    let row = net.table_starts[table];
    for (let j = net.table_members[table]; j < net.table_members[table + 1]; j += 1) row += code(numeric + j) * net.lookup_strides[j];
    const sum = table % 2 ? odd : even;
    for (let j = 0; j < h; j += 1) sum[j] += net.tables[row * h + j];
  }
  if (tables) for (let j = 0; j < h; j += 1) base[j] += F(even[j] + odd[j]);
  const last = net.widths.length - 1, scores = new Float32Array(m), favoured = [], spreads = [];
  for (let twin = 0; twin < m; twin += 1) {
    let near = base.map((x, j) => leaky(F(x + net.twins[twin * h + j]), net.slopes[0])), weight = 0, bias = 0;
    for (let layer = 0; layer <= last; layer += 1) {
      if (layer > 0) {
        const inputs = net.widths[layer - 1], outputs = net.widths[layer];
        near = dense(near, net.weights, weight, net.biases, bias, inputs, outputs, net.slopes[layer]);
        weight += inputs * outputs;
        bias += outputs;
      }
      const curve = CURVES[net.curves[layer]];
      if (curve) near = near.map((x) => curve(x, net.alphas[layer]));
      if (layer < last) (spreads[layer] ??= []).push(near);
    }
    if (net.linear) scores[twin] = near[0];
    else if (near.length === 1) scores[twin] = sigmoid(near[0]);
    else scores[twin] = F(1 / near.reduce((odds, x) => F(odds + exp(-x)), 1));
    if (!net.linear && near.length > 1) favoured.push(near.every((x) => x >= 0));
  }
  return { scores, favoured, spreads };
};

// A held neuron: no weight comes in, and its bias alone makes it put out the value.
const holding = (net, holds) => {
  const held = { ...net, ...Object.fromEntries(["bias", "twins", "numeric_slopes", "tables", "weights", "biases"].map((name) => [name, net[name].slice()])) };
  for (const { layer, neuron, at } of holds) {
    const bias = embedded.holds[layer - 1][HOLDS.findIndex(([name]) => name === at)][neuron], width = net.widths[layer - 1];
    const clear = (array, start, end) => { for (let i = start + neuron; i < end; i += width) array[i] = 0; };
    if (layer === 1) {
      for (const array of [held.twins, held.numeric_slopes, held.tables]) clear(array, 0, array.length);
      held.bias[neuron] = bias;
    } else {
      let weight = 0, first = 0;
      for (let i = 1; i < layer - 1; i += 1) { weight += net.widths[i - 1] * net.widths[i]; first += net.widths[i]; }
      clear(held.weights, weight, weight + net.widths[layer - 2] * width);
      held.biases[first + neuron] = bias;
    }
  }
  return held;
};

const goesLeft = (trees, node, value) => {
  const set = trees.sets[node], gone = Number.isNaN(value), rule = trees.missing[node];
  if (set < 0) {
    const read = gone && rule !== 2 ? 0 : value;
    if (Number.isNaN(read) || (rule === 1 && Math.abs(read) <= F(1e-35))) return trees.missing_left[node];
    return read <= trees.threshold[node];
  }
  const among = (flags, code) => code >= 0 && code < flags.length && flags[code] === 1;
  const code = Math.abs(value) < 2 ** 31 ? Math.trunc(value) : -1, known = trees.known[set], inside = among(trees.members[set], code);
  if (gone || (known && !inside && !among(known, code))) return trees.missing_left[node];
  return inside;
};

// Sums in the library's order and precision, then its link; the favourable class among the predictions is the score.
const LINKS = {
  identity: (sums) => sums,
  logistic: (sums, trees, R) => sums.map((x) => R(1 / R(R(Math.exp(trees.single ? Math.min(-x, F(88.7)) : -trees.slope * x)) + 1))),
  softmax: (sums, trees, R) => {
    const top = Math.max(...sums), powers = sums.map((x) => R(Math.exp(R(x - top)))), total = R(powers.reduce((sum, x) => sum + x, 0));
    return powers.map((x) => R(x / total));
  },
  exp: (sums, trees, R) => sums.map((x) => R(Math.exp(x))),
  softplus: (sums) => sums.map((x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))),
  step: (sums) => sums.map((x) => (x > 0 ? 1 : 0)),
  square: (sums) => sums.map((x) => Math.sign(x) * x * x),
};
LINKS.logistic_each = LINKS.logistic;
const predictions = (trees, codes) => {
  const inputs = trees.narrow ? new Float32Array(trees.fixed) : new Float64Array(trees.fixed);
  trees.parts.forEach((part, attribute) => {
    const code = codes[attribute];
    if (part.scale !== undefined) inputs[part.column] = code === part.gap ? NaN : (code - part.shift) * part.scale;
    else part.columns.forEach((column, i) => { inputs[column] = part.table[(Math.round(code) - part.low) * part.columns.length + i]; });
  });
  const values = trees.compares_narrow ? inputs.map(F) : inputs, R = trees.single ? F : (x) => x, width = trees.width;
  const sums = Array.from(trees.base, (x) => (trees.base_last ? 0 : R(x)));
  trees.roots.forEach((root, tree) => {
    let node = root;
    while (trees.feature[node] >= 0) node = goesLeft(trees, node, values[trees.feature[node]]) ? trees.left[node] : trees.right[node];
    for (let w = 0; w < width; w += 1) sums[trees.output[tree] + w] = R(sums[trees.output[tree] + w] + R(trees.values[node * width + w]));
  });
  return LINKS[trees.link](sums.map((x, i) => (trees.base_last ? R(x + R(trees.base[i])) : x) / trees.divisor), trees, R);
};
const below = (x) => { const bits = new Int32Array(new Float32Array([x]).buffer); bits[0] += x > 0 ? -1 : 1; return new Float32Array(bits.buffer)[0]; };
const treeScores = (trees, codes) => {
  const { columns, values, m } = embedded.twins, scores = new Float32Array(m), favoured = [], row = [...codes];
  for (let twin = 0; twin < m; twin += 1) {
    columns.forEach((column, i) => { row[column] = values[twin * columns.length + i]; });
    const found = predictions(trees, row), chosen = found[found.length > 1 ? trees.favourable : 0], score = trees.complement ? 1 - chosen : chosen;
    const cut = embedded.threshold, slipped = !trees.single && cut !== null && score < cut && F(score) >= F(cut);
    scores[twin] = slipped ? below(F(cut)) : embedded.bounded ? Math.min(Math.max(score, 0), 1) : score;
    if (found.length > 2) favoured.push(found.map(F).every((x) => F(chosen) >= x));
  }
  return { scores, favoured, spreads: [] };
};

// Rules keep people real; a program is an operation and its operands (domain/rule.py).
const OPERATIONS = {
  "=": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
  and: (a, b) => a && b, or: (a, b) => a || b, not: (a) => !a, "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, neg: (a) => -a,
  "->": (a, b) => !a || b, in: (a, ...rest) => rest.includes(a),
};
const holds = ([kind, ...operands], codes) => {
  if (kind === "column") return codes[operands[0]];
  if (kind === "number") return operands[0];
  return OPERATIONS[kind](...operands.map((one) => holds(one, codes)));
};
const validTwins = (codes, also) => {
  const { columns, values, m } = embedded.twins, row = [...codes];
  return Array.from({ length: m }, (_, twin) => {
    columns.forEach((column, i) => { row[column] = values[twin * columns.length + i]; });
    return also.includes(twin) || embedded.rules.every((rule) => !rule.twins || holds(rule.program, row));
  });
};

// Classes by a sweep from the lowest score up and one from the highest down: equally many, and of the two the one that
// shows more bits counts. Differences and bins are float32, as in the engine (engine/kernels/partition.py).
const swept = (order, value, width) => {
  const classes = new Map();
  let opened = null, k = 0;
  for (const twin of order) {
    if (opened === null || F(value(twin) - opened) > width) { opened = value(twin); k += 1; }
    classes.set(twin, k - 1);
  }
  const sizes = new Array(k).fill(0);
  for (const number of classes.values()) sizes[number] += 1;
  return { k, classes, bits: sizes.reduce((sum, size) => sum + size * Math.log2(size), 0) };
};
const classesOf = (scores, there) => {
  const { grid, epsilon, last, tolerance } = embedded.ruler;
  const value = grid ? (twin) => Math.min(Math.floor(F(scores[twin] / epsilon)), last ?? Infinity) : (twin) => scores[twin];
  const order = [...there].sort((a, b) => value(a) - value(b) || a - b), width = grid ? 0.5 : tolerance, n = there.length;
  const up = swept(order, value, width), down = swept([...order].reverse(), (twin) => -value(twin), width), { k } = up;
  const turned = !grid && up.bits - down.bits > 1e-12 * n;
  const classes = Array.from(scores, (_, twin) => (!up.classes.has(twin) ? -1 : turned ? k - 1 - down.classes.get(twin) : up.classes.get(twin)));
  return { k, classes, q_1: k > 1 ? Math.log2(n) - Math.min(up.bits, down.bits) / n : 0 };
};

const rowOf = (free) => {
  const codes = [...embedded.blank];
  free.forEach((code, i) => {
    const { name, choices, low, high, step } = embedded.setting.attributes[i];
    const known = choices ? choices.some(([value]) => value === code) : code !== null && code >= low && code <= high && (step !== 1 || Number.isInteger(code));
    if (!known) throw new Error(`${name} takes ${low} to ${high}${step === 1 ? " (whole numbers only)" : ""}, but got ${code ?? "nothing"}.`);
    codes[embedded.columns[i]] = code;
  });
  return codes;
};
const figuresOf = (codes, held = [], also = []) => {
  const { setting, threshold } = embedded, valid = validTwins(codes, also), there = [...valid.keys()].filter((twin) => valid[twin]);
  if (!there.length) throw new Error("No twin of this person can exist under the rules; change an attribute.");
  const model = held.length ? holding(embedded.model, held) : embedded.model;
  const { scores, favoured, spreads } = embedded.model.feature ? treeScores(model, codes) : networkScores(model, codes);
  const { k, classes, q_1 } = classesOf(scores, there);
  const [low, high] = [there.reduce((a, b) => (scores[b] < scores[a] ? b : a)), there.reduce((a, b) => (scores[b] > scores[a] ? b : a))];
  const favourable = setting.regression ? 0 : there.filter((twin) => (favoured.length ? favoured[twin] : scores[twin] >= F(threshold ?? 0.5))).length;
  return {
    k, bits: Math.log2(k), q_1, classes, favourable, twins: there.length, flips: favourable > 0 && favourable < there.length,
    low: scores[low], high: scores[high], span: F(scores[high] - scores[low]), worst: twinName(setting, low), best: twinName(setting, high),
    scores: Array.from(scores, (score, twin) => (valid[twin] ? score : null)), spreads: spreads.map((layer) => layer.filter((_, twin) => valid[twin])),
  };
};

const asked = async (path, query, body) => {
  if (path === "/start") return embedded.setting;
  const codes = rowOf(body.codes), same = embedded.setting.people.find((one) => one.codes.every((code, i) => code === body.codes[i]));
  const found = figuresOf(codes, body.hold, same?.also), outputs = found.spreads[body.layer - 1];
  const ends = (choose) => Array.from(outputs[0], (_, j) => outputs.reduce((end, one) => choose(end, one[j]), outputs[0][j]));
  const broken = same?.real ? [] : embedded.rules.filter((rule) => !rule.twins && !holds(rule.program, codes));
  return {
    ...found, accuracy: null, proof: "", distance: same?.distance ?? null,
    before: body.hold.length ? figuresOf(codes, [], same?.also) : null,
    notes: broken.map((rule) => `This person cannot exist under the rule ${rule.text}; no search would look at them.`),
    spread: outputs ? [ends(Math.min), ends(Math.max)] : null,
  };
};
