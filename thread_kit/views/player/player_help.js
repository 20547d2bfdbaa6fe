// The keys, and what the colours and signs mean; it lies over the episode, and moves nothing.

const KEYS = [
  ["space", "run, replay, pause"],
  ["t, e, d, s", "a step: token, event, thread, spawn; with Shift back"],
  ["0, 9", "the first moment, the last"],
  ["+, −", "faster, slower"],
  ["f", "fork at this moment"],
  ["a", "ablations: once more from its start, with a part taken away"],
  ["g, w", "the drawing on or off; the tree, or the supplemental work"],
  ["o", "open the thread that is at work"],
  ["↑ ↓ ← →, Enter", "in the tree: go, fold, open"],
  ["↑ ↓ ← →, Enter", "in the drawing: go, open (what one stands on shows phi and psi)"],
  ["z, r, v, c, m, j", "in the drawing: larger (Shift: smaller), fit, turn, fold, all threads, jump to the spawn"],
  ["?, Escape", "these keys, and away with them"],
];

const COLOURS = [
  ["few-shot", "the examples that every thread reads first"],
  ["context", "what phi gave the thread"],
  ["generated", "what the model wrote"],
  ["returned", "what psi gave back of a child"],
  ["reference", "stands for a child that nobody waits for yet"],
  ["observed", "what the environment answered"],
  ["instruction", "what the method wrote"],
];

const STATUSES = [
  ["generating", "at work, listening or waiting"],
  ["ended", "ended by itself"],
  ["truncated", "cut: a limit was reached"],
  ["failed", "an error"],
  ["stopped", "stopped by a person, or since the task is over"],
];

const SIGNS = [
  ["orange bars", "supplemental work: tokens that threads below generated for the few that came back (logarithmic)"],
  ["dashed blue bar", "in the plot of supplemental work: a child that has given nothing back yet"],
  ["wavy line", "a token at which a spawn was likely (10% or more), and did not come"],
  ["dotted line", "a token that was drafted: looked up in what stands above, and verified with others in one pass"],
  ["≈ 2", "in the tree: how many such tokens the thread has"],
  ["✎", "a person changed something here"],
  ["≠, orange edge", "beside its original, a fork went another way here"],
  ["…, dashed edge", "one side is not so far yet"],
  ["grey line above the timeline", "how deep in the tree each moment is; orange: the open thread"],
  ["● and ■", "in the drawing: a thread; its area grows with the tokens that it generated; ■ was cut short: it did not end by itself"],
  ["blue and orange arrows", "what phi gave the child, and what psi gave back; point at one, or click it"],
  ["> 2, + 12", "in the drawing: actions of a thread; threads below that are folded"],
  ["double ring, dashed ring", "in the drawing: the thread that is at work; one that went otherwise than in the original"],
];

function help() {
  const rows = (list, first) =>
    list.map(([sign, what]) => make("tr", {}, make("td", {}, first(sign)), make("td", {}, what)));
  const part = (title, list, first) => [
    make("b", {}, title),
    make("table", {}, make("tbody", {}, ...rows(list, first))),
  ];
  return [
    ...part("Keys", KEYS, (keys) => make("kbd", {}, keys)),
    ...part("Where a text comes from", COLOURS, (name) => make("span", { class: `tk-swatch ${css(name)}` }, name)),
    ...part("What a thread does", STATUSES, (status) => badge(status)),
    ...part("Signs", SIGNS, (sign) => sign),
  ];
}
