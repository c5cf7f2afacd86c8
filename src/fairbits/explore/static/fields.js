// One field for each attribute: a list for what has labels, a number with a slider for the rest.

const fieldOf = (attribute, index, changed) => {
  const id = `field-${index}`;
  const words = attribute.name.split(/(?<=_)/).flatMap((word) => [make("wbr"), word]);
  const name = make("span", { title: attribute.name }, ...words);
  const holder = make("div");
  const field = make("label", { className: "field", htmlFor: id }, name, holder);
  let show;
  if (attribute.choices) {
    const list = make("select", { id });
    attribute.choices.forEach(([, label], i) => list.append(make("option", { value: String(i), textContent: label })));
    list.addEventListener("change", () => changed(attribute.choices[Number(list.value)][0]));
    holder.append(list);
    const slider = attribute.kind === "integer" && attribute.choices.length > 2 ? sliderOf(attribute, 0, attribute.choices.length - 1, 1) : null;
    if (slider) {
      slider.addEventListener("input", () => changed(attribute.choices[Number(slider.value)][0]));
      holder.append(slider);
    }
    show = (code) => {
      const at = attribute.choices.findIndex(([value]) => value === code);
      list.value = String(at);
      if (slider) {
        slider.value = String(at);
        slider.setAttribute("aria-valuetext", attribute.choices[at][1]);
      }
    };
  } else {
    const step = attribute.step ?? "any";
    const number = make("input", { type: "number", id, min: attribute.low, max: attribute.high, step, required: true });
    const slider = sliderOf(attribute, attribute.low, attribute.high, attribute.step ?? ((attribute.high - attribute.low) / 500 || 1));
    number.addEventListener("input", () => changed(Number.isNaN(number.valueAsNumber) ? null : number.valueAsNumber));
    slider.addEventListener("input", () => changed(Number(slider.value)));
    holder.append(number, slider);
    show = (code) => {
      if (document.activeElement !== number || number.valueAsNumber !== code) number.value = code === null ? "" : String(code);
      if (code !== null) slider.value = String(code);
    };
  }
  return { field, show };
};

const sliderOf = (attribute, min, max, step) => {
  const slider = make("input", { type: "range", min: String(min), max: String(max), step: String(step) });
  slider.setAttribute("aria-label", attribute.name);
  return slider;
};
