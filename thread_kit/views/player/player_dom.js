// Words and elements. All text of models and environments goes into the page as text, never as
// markup.

const number = (n) => n.toLocaleString("en");
const count = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;
const costs = ({ calls, generated, evaluated, reused }) => [
  count(calls, "call"),
  `generated ${number(generated)}`,
  `evaluated ${number(evaluated)}`,
  `reused ${number(reused)}`,
];
const css = (name) => "tk-" + name.replaceAll(" ", "-");
const badge = (text, status = text) => make("span", { class: `tk-badge ${css(status)}` }, text);
const doingWords = (one) =>
  one.waits_for === null ? one.status : `${one.status} for ${one.waits_for}`;
const doing = (one) => badge(doingWords(one), one.status);
const nameOf = (one) => (one.future ? `{${one.future}} ` : "") + one.title;
const isBranch = (item) => "branch" in item;
const childrenOf = (one) => one.sequence.filter(isBranch).map(({ branch }) => String(branch));
const button = (label, onclick, more = {}) =>
  make("button", { type: "button", onclick, ...more }, label);

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
