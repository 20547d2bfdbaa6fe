// The form in which a person says where to fork, and what to change first.

class Forking extends Form {
  constructor(view) {
    super(view, "fork", "tk-fork");
  }

  // At the moment that is shown.
  askHere() {
    const { recording } = this.view.track();
    const at = this.view.at();
    const place = recording.fork(at);
    if (!place) {
      const frame = recording.frames[at - 1];
      return this.view.report(whyNot(frame), "token" in (frame ?? {}) ? () => this.isCallOver(at) : undefined);
    }
    const thread = recording.frames[at - 1].thread;
    const fields = place.span ? this.tokenFields(place.span, place.token, recording.about.marks) : [];
    const what = `after this ${place.span ? "token" : "event"}`;
    this.build(this.view.selected, what, place.at, { token: place.token }, fields, thread);
    this.element.querySelector("[type=submit]").focus();
  }

  // Behind a token: nobody need wait any more.
  isCallOver(at) {
    const { now, recording } = this.view.track();
    return now.phase === "over" || this.view.store.isDead || recording.fork(at) !== null;
  }

  // What can be written, or kept from being written, at a token of a call.
  tokenFields(span, token, marks) {
    const fields = [];
    this.field(fields, "text", "Write this next", "", { rows: 2 });
    const likely = span.logprobs?.[token]?.[2] ?? [];
    const offers = likely.map(([text, share]) =>
      button(`${JSON.stringify(text)} ${percent(share)}`, () => this.write(text)),
    );
    if (offers.length) fields.push(make("div", { class: "tk-likely" }, "Likeliest here: ", ...offers));
    fields.push(
      button(`Spawn here (${marks.listen})`, () => this.spawnHere(marks.listen)),
      this.check("forbid_spawn", "Do not let it spawn before the line ends"),
    );
    return fields;
  }

  ask(side, thread, choice) {
    const { recording } = this.view.track(side);
    const { marks } = recording.about;
    const fields = [];
    let [at, fixed, what] = [choice.span?.event, {}, ""];
    if (choice.kind === "token") {
      const characters = Array.from(choice.span.text);
      const length = choice.span.lengths.slice(0, choice.token).reduce((a, b) => a + b, 0);
      const before = characters.slice(Math.max(0, length - 40), length).join("");
      what = `in thread ${thread.id}, behind “…${before}”`;
      fixed = { token: choice.token };
      fields.push(...this.tokenFields(choice.span, choice.token, marks));
    } else if (choice.kind === "variables") {
      at = recording.nextOf(this.view.at(side), thread.id);
      what = `in thread ${thread.id}, the variable ${choice.name}`;
      if (at === null) return this.view.report(`Thread ${thread.id} does nothing behind this moment.`);
      this.field(fields, "value", `${choice.name} =`, choice.value, { rows: 1 });
      fixed = { variable: choice.name };
    } else {
      what = { context: "what the child sees", observation: "what is observed", returned: "what comes back" };
      what = `in thread ${thread.id}: ${what[choice.kind]}`;
      const text = choice.span.asked ?? withoutClose(choice.span.text, marks.close);
      this.field(fields, choice.kind, "Instead", text, { rows: 2 });
    }
    this.build(this.view.shown[side], what, at, fixed, fields, thread.id);
  }

  build(track, what, at, fixed, fields, thread) {
    const { choices } = this.view.store;
    const { exchange, sampling, engine } = this.view.store.tracks[track].recording.about;
    this.place = { track, at, fixed };
    this.asked = { thread };
    // What the episode has, which need not be among the choices, and what a program has none of.
    const now = { ...exchange, engine };
    const more = ["phi", "psi", "abstract", "engine"]
      .filter((name) => now[name])
      .map((name) => [name, [...new Set([now[name], ...(choices[name] ?? [])])]])
      .filter(([, names]) => names.length > 1)
      .map(([name, names]) => this.select(name, names, now[name]));
    const temperature = make("input", {
      name: "temperature",
      type: "number",
      min: "0",
      step: "any",
      value: String(sampling.temperature ?? 0),
    });
    this.before = { temperature: temperature.value, ...now };
    this.open(
      "Fork",
      make("b", {}, `Fork ${what}`),
      ...fields,
      make(
        "details",
        {},
        make("summary", {}, "from there on, with"),
        ...more,
        make("label", {}, "temperature ", temperature),
      ),
    );
    (this.element.querySelector("textarea, [type=submit]") ?? this.element).focus();
  }

  field(fields, name, label, value, { rows }) {
    const area = make("textarea", { name, rows: String(rows), spellcheck: "false" });
    area.value = value;
    fields.push(make("label", {}, `${label} `, area));
  }

  check(name, label) {
    return make("label", {}, make("input", { type: "checkbox", name }), ` ${label}`);
  }

  select(name, values, chosen) {
    const option = (value) => make("option", { value, selected: value === chosen }, value);
    return make("label", {}, `${name} `, make("select", { name }, ...values.map(option)));
  }

  write(text) {
    const area = this.element.elements.text;
    area.value = text;
    area.focus();
  }

  spawnHere(mark) {
    const area = this.element.elements.text;
    area.value = area.value.replace(/\s*$/, "") + ` ${mark}`;
    area.focus();
  }

  send() {
    const form = Object.fromEntries(new FormData(this.element));
    const { variable, ...changes } = this.place.fixed;
    if (changes.token === undefined) delete changes.token;
    if (variable) changes.variables = { [variable]: form.value };
    for (const name of ["text", "context", "observation", "returned"])
      if (form[name] || (form[name] === "" && name !== "text")) changes[name] = form[name];
    if (form.forbid_spawn) changes.forbid_spawn = true;
    for (const name of ["phi", "psi", "abstract", "engine"])
      if (form[name] !== undefined && form[name] !== this.before[name]) changes[name] = form[name];
    if (form.temperature !== this.before.temperature) changes.temperature = Number(form.temperature);
    this.close();
    this.view.fork({ track: this.place.track, at: this.place.at, changes });
  }
}

// Why an episode cannot go on otherwise from behind this frame.
function whyNot(frame) {
  if (!frame) return "Nothing has happened yet: step to the moment from which it should go otherwise.";
  if ("event" in frame) return "The episode is over here: step back to the moment from which it should go otherwise.";
  return "The model is in the middle of this call: wait until it is over, or step to an event.";
}

// A text as it came back, before it was closed.
function withoutClose(text, mark) {
  const bare = text.replace(/\n$/, "");
  return bare.endsWith(mark) ? bare.slice(0, -mark.length) : bare;
}
