// Turns a drawing in space: it projects and sorts what the server computed, and tells which point was clicked.
"use strict";
(() => {
  let angle = -0.576; // the view of the figure in the report
  let tilt = 0.3;
  let zoom = 1;
  let redraw = null;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw?.());

  window.attngeomTurn = (root) => {
    const canvas = root.querySelector("canvas[data-scene]");
    if (!canvas) return;
    const scene = JSON.parse(canvas.dataset.scene);
    const pen = canvas.getContext("2d");
    const colour = (name) => getComputedStyle(canvas).getPropertyValue(`--${name}`);
    let seen = [];

    function project([x, y, z]) {
      const [a, b] = [Math.cos(angle), Math.sin(angle)];
      const [u, v] = [a * x - b * y, b * x + a * y];
      const [c, s] = [Math.cos(tilt), Math.sin(tilt)];
      const size = Math.min(canvas.width, canvas.height) * 0.31 * zoom;
      const height = z - scene.middle;
      return [canvas.width / 2 + size * u, canvas.height / 2 - size * (c * height + s * v), s * height - c * v];
    }

    function line(points, style, width, dash) {
      pen.beginPath();
      points.map(project).forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.strokeStyle = colour(style);
      pen.lineWidth = width * ratio;
      pen.setLineDash((dash || []).map((part) => part * ratio));
      pen.stroke();
      pen.setLineDash([]);
    }

    function dot(point, fill, edge, size) {
      const [x, y] = project(point);
      pen.beginPath();
      pen.arc(x, y, size * ratio, 0, 2 * Math.PI);
      pen.fillStyle = colour(fill);
      pen.fill();
      pen.strokeStyle = colour(edge);
      pen.lineWidth = 2 * ratio;
      pen.stroke();
    }

    let ratio = 1;
    function draw() {
      ratio = window.devicePixelRatio || 1;
      canvas.width = canvas.clientWidth * ratio;
      canvas.height = canvas.clientHeight * ratio;
      pen.clearRect(0, 0, canvas.width, canvas.height);
      for (const axis of scene.axes) {
        line(axis.line, "edge", 1);
      }
      const faces = [];
      for (const sheet of scene.sheets) {
        const flat = sheet.rows.map((row) => row.map(project));
        const fill = colour(sheet.fill);
        for (let i = 0; i + 1 < flat.length; i++) {
          for (let j = 0; j + 1 < flat[i].length; j++) {
            const corners = [flat[i][j], flat[i][j + 1], flat[i + 1][j + 1], flat[i + 1][j]];
            faces.push([corners.reduce((sum, corner) => sum + corner[2], 0), corners, fill]);
          }
        }
      }
      faces.sort((one, other) => one[0] - other[0]);
      pen.lineWidth = 0.6 * ratio;
      pen.strokeStyle = colour(scene.edge);
      for (const [, corners, fill] of faces) {
        pen.beginPath();
        corners.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
        pen.closePath();
        pen.fillStyle = fill;
        pen.fill();
        pen.stroke();
      }
      for (const part of scene.lines) line(part.points, part.style, part.width, part.dash);
      for (const axis of scene.axes) {
        const [x, y] = project(axis.line[1]);
        pen.fillStyle = colour("word");
        pen.font = `${14 * ratio}px sans-serif`;
        pen.fillText(axis.name, x + 5 * ratio, y - 5 * ratio);
      }
      for (const part of scene.dots) dot(part.point, part.fill, part.edge, part.size);
      seen = scene.picks.map((pick) => [project(pick.point), pick.set]);
    }

    function pick(event) {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
      let best = null;
      for (const [[u, v, depth], set] of seen) {
        const away = Math.hypot(u - x, v - y);
        if (away > 14 * ratio) continue;
        // Of the points under the pointer the one in front counts.
        const score = away / ratio - 40 * depth;
        if (!best || score < best[0]) best = [score, set];
      }
      if (best) canvas.dispatchEvent(new CustomEvent("attngeom-set", { bubbles: true, detail: best[1] }));
    }

    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = { x: event.clientX, y: event.clientY, moved: 0 };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) return;
      const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
      held = { x: event.clientX, y: event.clientY, moved: held.moved + Math.abs(dx) + Math.abs(dy) };
      angle += dx * 0.01;
      tilt = Math.max(-1.5, Math.min(1.5, tilt + dy * 0.01));
      draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      if (held && held.moved < 4) pick(event);
      held = null;
    });
    canvas.addEventListener("keydown", (event) => {
      const moves = {
        ArrowLeft: [-0.1, 0, 1], ArrowRight: [0.1, 0, 1], ArrowUp: [0, -0.1, 1], ArrowDown: [0, 0.1, 1],
        "+": [0, 0, 1.1], "-": [0, 0, 1 / 1.1],
      };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      angle += move[0];
      tilt = Math.max(-1.5, Math.min(1.5, tilt + move[1]));
      zoom = Math.max(0.4, Math.min(4, zoom * move[2]));
      draw();
    });
    redraw = draw;
    new ResizeObserver(draw).observe(canvas);
    draw();
  };
})();
