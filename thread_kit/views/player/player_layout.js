// Where the threads stand in the drawing: Thread 0 on top, children below in the order of their
// spawns. Each subtree has a box of its own, so nothing ever lies over anything else, and a thread
// keeps its place while others write.

const MOST = 40; // threads that are drawn, until a person asks for more

// nodes: {id, up, level, x (in slots), hidden}; of those that are not drawn a node without an id says
// how many they are (`hidden`, below `up`). path: threads that are always drawn. folds: what a
// person has folded (true) or unfolded (false), by thread.
export function layoutDrawing(threads, { path = [], folds = new Map(), most = MOST } = {}) {
  const ids = Object.keys(threads); // children come after their parents
  if (!ids.length) return { nodes: [], width: 1, levels: 1 };
  const children = new Map(ids.map((id) => [id, childrenOf(threads[id])]));
  const sizes = new Map();
  for (const id of [...ids].reverse())
    sizes.set(id, children.get(id).reduce((sum, child) => sum + sizes.get(child), 1));

  // Level by level, as long as there is room.
  const nodes = [{ id: ids[0], up: null, level: 0, below: [], hidden: 0 }];
  for (let at = 0; at < nodes.length; at++) {
    const node = nodes[at];
    if (node.hidden) continue;
    const fold = folds.get(node.id);
    const room = fold === undefined ? most - nodes.length : fold ? 0 : Infinity;
    const own = children.get(node.id);
    const isShown = (child, place) => place < room || (fold === undefined && path.includes(child));
    const shown = own.filter(isShown);
    const hidden = own.reduce((sum, child, n) => (isShown(child, n) ? sum : sum + sizes.get(child)), 0);
    node.below = shown.map((id) => ({ id, up: node, level: node.level + 1, below: [], hidden: 0 }));
    if (hidden) node.below.push({ id: null, up: node, level: node.level + 1, below: [], hidden });
    nodes.push(...node.below);
  }

  // A box for each subtree, from the leaves up; and then a place in it.
  for (const node of [...nodes].reverse())
    node.width = Math.max(1, node.below.reduce((sum, { width }) => sum + width, 0));
  nodes[0].left = 0;
  for (const node of nodes) {
    node.x = node.left + node.width / 2;
    let { left } = node;
    for (const child of node.below) {
      child.left = left;
      left += child.width;
    }
  }
  return { nodes, width: nodes[0].width, levels: nodes.at(-1).level + 1 };
}
