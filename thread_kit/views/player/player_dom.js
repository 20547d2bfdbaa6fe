// Elements. What an episode says comes in words from Python (views/formatting.py). All text of models
// and environments goes into the page as text, never as markup.

const number = (n) => n.toLocaleString("en");
const pluralize = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
const css = (name) => "tk-" + name.replaceAll(" ", "-");
const badge = (text, status = text) => make("span", { class: `tk-badge ${css(status)}` }, text);
const statusBadge = (thread) => badge(thread.status_text, thread.status);
const isBranch = (item) => "branch" in item;
const childrenOf = (thread) => thread.sequence.filter(isBranch).map(({ branch }) => String(branch));

// The tokens that a thread and all below it generated.
function generatedBy(id, threads) {
  let sum = 0;
  const waiting = [id];
  while (waiting.length) {
    const thread = threads[waiting.pop()];
    sum += thread.usage.generated;
    waiting.push(...childrenOf(thread));
  }
  return sum;
}

const button = (label, onclick, more = {}) =>
  make("button", { type: "button", onclick, ...more }, label);

const SVG = "http://www.w3.org/2000/svg";

// An element of a drawing, made as `make` makes one of the page.
function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// An element: its attributes (on... are listeners), its children (texts or elements).
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("aria-")) element.setAttribute(name, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// These children and no others. What is there already stays in the page: taken out, it would forget
// how far it was scrolled.
function setChildren(parent, children) {
  for (const child of [...parent.children]) if (!children.includes(child)) child.remove();
  children.forEach((child, n) => {
    const here = parent.children[n];
    if (here !== child) parent.insertBefore(child, here ?? null);
  });
}
