// Switches: the episode once more from its start, with a part of THREAD taken away or another phi or
// psi; both trees then stand side by side.

const WHOLE = { phi: "phi_full_sequence", psi: "psi_full_sequence" };

class Switches extends Form {
  constructor(view) {
    super(view, "ablations", "tk-ablations");
  }

  toggle() {
    if (!this.element.hidden) return this.close();
    const { choices } = this.view.store;
    const { about } = this.view.track().recording;
    this.number = this.view.selected;
    this.before = about.exchange;
    if (!about.exchange.phi) return this.view.report("Another method than THREAD played this episode: it has no phi and psi to exchange.");
    const menu = (kind) => {
      const names = [...new Set([about.exchange[kind], ...(choices[kind] ?? [])])];
      const option = (name) => make("option", { value: name, selected: name === about.exchange[kind] }, name);
      return make("select", { name: kind, "aria-label": kind, onchange: () => this.agree() }, ...names.map(option));
    };
    this.menus = { phi: menu("phi"), psi: menu("psi"), abstract: menu("abstract") };
    const box = (name, label) => {
      const input = make("input", { type: "checkbox", name, onchange: () => this.turn(name, input.checked) });
      return [input, make("label", {}, input, ` ${label}`)];
    };
    const [variables, noVariables] = box("variables", "no variables");
    const [phi, toChild] = box("whole-phi", "the whole sequence to the child (phi)");
    const [psi, toParent] = box("whole-psi", "the whole sequence back (psi)");
    this.boxes = { phi, psi };
    variables.checked = variables.disabled = about.scope === "none";
    this.variables = variables;
    this.open(
      "Play beside it",
      make("b", {}, "Play it once more from its start, and compare"),
      make("span", { class: "tk-switches" }, noVariables, toChild, toParent),
      make(
        "span",
        { class: "tk-switches" },
        ...Object.entries(this.menus).map(([kind, select]) => make("label", {}, `${kind} `, select)),
      ),
    );
    this.agree();
    variables.focus();
  }

  turn(name, isOn) {
    const kind = name.slice("whole-".length);
    if (kind in WHOLE && name !== "variables")
      this.menus[kind].value = isOn ? WHOLE[kind] : this.before[kind] === WHOLE[kind] ? this.menus[kind].options[1].value : this.before[kind];
  }

  agree() {
    for (const [kind, box] of Object.entries(this.boxes)) box.checked = this.menus[kind].value === WHOLE[kind];
  }

  send() {
    const changes = {};
    if (this.variables.checked && !this.variables.disabled) changes.scope = "none";
    for (const [kind, { value }] of Object.entries(this.menus)) if (value !== this.before[kind]) changes[kind] = value;
    this.close();
    if (!Object.keys(changes).length) return this.view.report("No switch was turned: the same episode would be played.");
    this.view.send({ do: "ablate", track: this.number, changes });
  }
}

// In what a fork was made otherwise than its original, in words.
function changesOf(before, after) {
  const changes = [];
  if (before.scope !== after.scope) changes.push(after.scope === "none" || after.scope === "own" ? "no variables" : `variables ${after.scope}`);
  for (const [kind, name] of Object.entries(after.exchange)) if (before.exchange[kind] !== name) changes.push(name);
  for (const [role, { name }] of Object.entries(after.prompts)) if (!(role in before.prompts)) changes.push(`prompt ${name}`);
  for (const [name, value] of Object.entries(after.sampling)) if (before.sampling[name] !== value) changes.push(`${name} ${value}`);
  return changes;
}

// What a fork cost and came to, beside its original. Evaluated are the tokens of what was done anew,
// which of a fork in the middle is another part of the episode.
function sums(states, isWhole) {
  const [before, after] = states.map(({ threads, reward }) => {
    const all = Object.values(threads);
    const sum = (name) => all.reduce((sum, { usage }) => sum + usage[name], 0);
    return { threads: all.length, generated: sum("generated"), evaluated: sum("evaluated"), reward };
  });
  const line = (label, name) => {
    const by = after[name] - before[name];
    return `${label} ${number(before[name])} → ${number(after[name])} (${by > 0 ? "+" : by < 0 ? "−" : "±"}${number(Math.abs(by))})`;
  };
  const tokens = [line("tokens generated", "generated"), ...(isWhole ? [line("evaluated", "evaluated")] : []), line("threads", "threads")];
  return [`reward ${before.reward} → ${after.reward}`, ...tokens].join(" · ");
}
