// The X-ray of an edge of the tree: what phi took of all that the parent had, and what psi took of
// all that the child wrote. What they took they have shown themselves (views/xray.py).

const MARKS = {
  taken: "taken as it stands",
  value: "a variable, and its value",
  assigned: "where it was assigned",
};

function edge(child, parent) {
  const place = parent.sequence.findIndex(({ branch }) => branch === child.id);
  const had = [parent.context, ...parent.sequence.slice(0, place).filter((item) => !isBranch(item))];
  const wrote = [child.context, ...child.sequence.filter((item) => !isBranch(item))];
  const back = parent.sequence.find(
    (item) => item.child === child.id && item.provenance === "returned",
  );
  return [
    half("phi", `what thread ${parent.id} had, and what thread ${child.id} saw of it`, had, child.context, () => true),
    ...(back
      ? [half("psi", `what thread ${child.id} wrote, and what thread ${parent.id} got of it`, wrote, back, isWritten)]
      : []),
  ];
}

const isWritten = (piece) => piece.provenance === "generated";

// pieces: in the order in which the marks count them. Of those that are not wanted, only the marked
// ones are shown; where something is left out, there is a gap.
function half(name, what, pieces, passed, isWanted) {
  const marks = passed.taken?.marks ?? [];
  const of = (place) => marks.filter(([piece]) => piece === place);
  const source = [];
  let gap = false;
  pieces.forEach((piece, place) => {
    const own = of(place);
    if (!isWanted(piece) && !own.length) return void (gap = source.length > 0);
    if (gap) source.push(make("span", { class: "tk-gap", title: "left out here: what others wrote" }, " ⋯ "));
    gap = false;
    source.push(...marked(Array.from(piece.asked ?? piece.text), own));
    if (place === 0) source.push("\n");
  });
  const text = passed.asked ?? passed.text;
  const all = make("pre", { tabindex: "0", "aria-label": `${name}: what there was` }, ...source);
  requestAnimationFrame(() => {
    // What passed stands at the end, mostly: that is what one wants to see.
    const last = [...all.querySelectorAll(".tk-taken, .tk-value")].at(-1);
    if (last) all.scrollTop = last.offsetTop - all.offsetTop - all.clientHeight / 2;
  });
  return make(
    "div",
    { class: "tk-edge" },
    make("div", {}, make("b", {}, name), ` · ${what}`, ...legend(passed.taken)),
    all,
    make("pre", { "aria-label": `${name}: what passed` }, ...result(passed.taken, text)),
  );
}

function legend(taken) {
  if (!taken) return [make("div", {}, "Nothing is marked: a person or the method itself wrote what passed, or the function chooses by the words.")];
  const kinds = Object.keys(MARKS).filter((kind) => taken.marks.some((mark) => mark[3] === kind));
  const above = taken.above.length ? [`  from above: ${taken.above.join(", ")}`] : [];
  return [make("div", { class: "tk-legend" }, ...kinds.flatMap((kind) => [mark(kind, MARKS[kind]), " "]), ...above)];
}

const mark = (kind, text, title = MARKS[kind]) => make("mark", { class: `tk-${kind}`, title }, text);

// A text with its marks; of two that lie over each other the first one counts.
function marked(characters, marks) {
  const kinds = new Array(characters.length);
  const order = ["assigned", "taken", "value"];
  for (const kind of order)
    for (const own of marks) if (own[3] === kind) kinds.fill(own, own[1], own[2]);
  const parts = [];
  for (let at = 0, end; at < characters.length; at = end) {
    for (end = at + 1; end < characters.length && kinds[end] === kinds[at]; ) end++;
    const text = characters.slice(at, end).join("");
    const own = kinds[at];
    parts.push(own ? mark(own[3], text, `${MARKS[own[3]]}${own[4] ? `: ${own[4]}` : ""}`) : text);
  }
  return parts;
}

function result(taken, text) {
  if (!taken) return [text];
  return taken.passed.map(([part, kind, name]) => (kind ? mark(kind, part, name ? `the value of ${name}` : MARKS[kind]) : part));
}

// What a child gave back, or the reference that stands for it.
const answerOf = (parent, child) => parent.sequence.find((item) => item.child === child);

const SHORT = 240; // characters of a text in a caption

// What phi took and psi gave back, in their colours, in a caption.
function passed(child, parent) {
  const line = (name, way, piece) => {
    const text = piece.asked ?? piece.text;
    const cut = text.length > SHORT ? [` … (${number(text.length - SHORT)} more characters)`] : [];
    const shown = cut.length ? [text.slice(0, SHORT)] : result(piece.taken, text);
    return make("div", {}, make("b", { class: `tk-${name}-name` }, name), ` ${way}: `, make("code", {}, ...shown), ...cut);
  };
  const back = answerOf(parent, child.id);
  const [down, up] = [`thread ${parent.id} → ${child.id}`, `thread ${child.id} → ${parent.id}`];
  return [
    line("phi", down, child.context),
    back ? line("psi", up, back) : make("div", {}, make("b", { class: "tk-psi-name" }, "psi"), " nothing yet"),
  ];
}
