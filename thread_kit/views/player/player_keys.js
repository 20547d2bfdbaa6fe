// Keys that are pressed inside stay inside. JupyterLab has commands on single letters: x cuts the
// cell, m makes it text, 0 0 restarts the kernel. It looks for `data-lm-suppress-shortcuts` on what
// has the focus first, so that is where it has to stand; an older one looks before we do.

function keepKeys(element) {
  const mark = "data-lm-suppress-shortcuts";
  element.addEventListener("focusin", ({ target }) => target.setAttribute(mark, "true"));
  element.addEventListener("focusout", ({ target }) => target.removeAttribute(mark));
  element.addEventListener("keydown", (event) => {
    const { ctrlKey, metaKey, target } = event;
    if ((ctrlKey || metaKey) && event.key === "s") {
      target.removeAttribute(mark); // to save the notebook is JupyterLab's, wherever one is
      setTimeout(() => target.setAttribute(mark, "true"));
    } else event.stopPropagation();
  });
}
