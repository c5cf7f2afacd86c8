"use strict";
// Only comfort: without this script everything on the page can still be read.
const root = document.documentElement;
root.classList.remove("no-script");
const dark = () => root.dataset.look ? root.dataset.look === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const button = document.getElementById("look");
const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
button.addEventListener("click", () => { root.dataset.look = dark() ? "light" : "dark"; name(); });
name();
const output = document.getElementById("neuron");
if (output) {
  for (const part of document.querySelectorAll("svg .part")) {
    const say = () => { output.textContent = part.getAttribute("aria-label"); };
    for (const event of ["mouseenter", "focus", "click"]) part.addEventListener(event, say);
  }
}
const open = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let fold = target?.closest?.("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (target) target.scrollIntoView();
};
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const one of closed) one.open = true;
});
addEventListener("afterprint", () => { for (const one of closed) one.open = false; });
addEventListener("hashchange", open);
open();
