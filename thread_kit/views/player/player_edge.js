// The X-ray of an edge of the tree: what phi gave the child of all that its parent had, and what psi
// gave back of all that the child wrote. Words that passed are marked.

const WORDS = 600; // of each text, its last ones; more would take too long to compare

function edge(child, parent) {
  const place = parent.sequence.findIndex(({ branch }) => branch === child.id);
  const had = [parent.context, ...parent.sequence.slice(0, place).filter((item) => !isBranch(item))];
  const back = parent.sequence.find(
    (item) => item.child === child.id && item.provenance === "returned",
  );
  const wrote = child.sequence.filter((item) => item.provenance === "generated");
  return [
    half("phi", `of what thread ${parent.id} had, thread ${child.id} saw`, had, child.context.asked),
    ...(back
      ? [half("psi", `of what thread ${child.id} wrote, thread ${parent.id} got`, wrote, back.text)]
      : []),
  ];
}

function half(name, what, pieces, passed) {
  const text = pieces.map((piece) => piece.asked ?? piece.text).join("");
  const total = pieces.reduce((sum, piece) => sum + piece.tokens, 0);
  const [left, right] = [words(text), words(passed)];
  const same = common(left, right);
  const marked = (list, side) =>
    list.map((word, n) => (same[side].has(n) ? make("mark", {}, word) : word));
  const passes = same[1].size / Math.max(right.filter((word) => word.trim()).length, 1);
  return make(
    "div",
    { class: "tk-edge" },
    make("div", {}, make("b", {}, name), ` · ${what}: ${percent(passes)} of the words that passed stand in ${number(total)} tokens`),
    make("pre", { tabindex: "0" }, ...marked(left, 0)),
    make("pre", {}, ...marked(right, 1)),
  );
}

const words = (text) => text.match(/\{?\w+\}?|\s+|[^\w\s]/g) ?? [];

// The longest common subsequence of two lists of words, as the places in each; spaces do not count.
function common(left, right) {
  const lastWords = (list) =>
    list.map((word, n) => [word, n]).filter(([word]) => word.trim()).slice(-WORDS);
  const [a, b] = [lastWords(left), lastWords(right)];
  const long = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++)
      long[i][j] =
        a[i - 1][0] === b[j - 1][0]
          ? long[i - 1][j - 1] + 1
          : Math.max(long[i - 1][j], long[i][j - 1]);
  const places = [new Set(), new Set()];
  let [i, j] = [a.length, b.length]; // from the end: what was said last is what was passed
  while (i && j) {
    if (a[i - 1][0] === b[j - 1][0]) {
      places[0].add(a[--i][1]);
      places[1].add(b[--j][1]);
    } else if (long[i - 1][j] >= long[i][j - 1] && long[i - 1][j] === long[i][j]) i--;
    else j--;
  }
  return places;
}
