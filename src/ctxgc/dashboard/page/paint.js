// What the canvases share: colours of the style sheet, and sharp pixels at any size of the window.

const SCHEME = matchMedia("(prefers-color-scheme: dark)");
let known = {};
SCHEME.addEventListener("change", () => { known = {}; });

/** The colours of the style sheet now: they change with the colour scheme. Asking the page for one makes it
 * lay itself out, so each is asked for once. */
const COLOURS = new Proxy({}, {
  get: (_, name) => (known[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()),
});

export function palette() {
  return COLOURS;
}

/** A canvas that fills its place; `draw(context, width, height)` is called when it must be drawn anew. */
export class Canvas {
  constructor(element, draw) {
    this.element = element;
    this.draw = draw;
    this.size = [0, 0];
    new ResizeObserver(() => this.fit()).observe(element);
    SCHEME.addEventListener("change", () => this.paint());
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.element;
    const scale = devicePixelRatio || 1;
    if (!width || !height) return;
    this.size = [width, height];
    this.element.width = Math.round(width * scale);
    this.element.height = Math.round(height * scale);
    this.paint();
  }

  paint() {
    const [width, height] = this.size;
    if (!width) return;
    const context = this.element.getContext("2d");
    context.setTransform(this.element.width / width, 0, 0, this.element.height / height, 0, 0);
    context.clearRect(0, 0, width, height);
    this.draw(context, width, height);
  }
}
