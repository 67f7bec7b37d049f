"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  var onPaper = false;
  var drawn = [];
  var LIGHT = ["#2563a8", "#c2410c", "#15803d", "#7e3fa8"];
  var DARK = ["#7ab8ff", "#ff9f6b", "#6fd39a", "#d3a4ff"];
  var HEIGHT = 260;

  function colours() {
    var isDark = dark.matches && !onPaper;
    return {
      lines: isDark ? DARK : LIGHT,
      ink: isDark ? "#c9d1d9" : "#3d4650",
      grid: isDark ? "#2b3137" : "#e4e8ec",
      checkpoint: isDark ? "rgba(255,196,107,.18)" : "rgba(202,138,4,.16)",
      outage: isDark ? "rgba(255,138,128,.28)" : "rgba(220,38,38,.18)",
      heat: isDark ? [122, 184, 255] : [23, 78, 140]
    };
  }

  function widthOf(place) {
    return Math.max(200, Math.floor(place.getBoundingClientRect().width));
  }

  function number(value) {
    return value === null || value === undefined ? "none" : String(value);
  }

  function percentile(oneOf) {
    return String(Number((100 - 100 / oneOf).toFixed(6)));
  }

  /* Stretches of time behind the lines. */
  function marked(plot) {
    var colour = colours();
    var box = plot.bbox;
    data.marks.forEach(function (mark) {
      var from = Math.max(box.left, plot.valToPos(mark.from_s, "x", true));
      var to = Math.min(box.left + box.width, plot.valToPos(mark.to_s, "x", true));
      if (to < box.left || from > box.left + box.width) return;
      plot.ctx.fillStyle = colour[mark.kind];
      plot.ctx.fillRect(from, box.top, Math.max(to - from, 2), box.height);
    });
  }

  function options(chart, place, logarithmic) {
    var colour = colours();
    var axis = { stroke: colour.ink, grid: { stroke: colour.grid, width: 1 }, ticks: { stroke: colour.grid, width: 1 } };
    var overTime = chart.over === "time";
    var x = overTime ? { time: false } : { time: false, distr: 3 };
    var across = Object.assign({}, axis, {
      values: function (plot, values) {
        return values.map(function (value) {
          if (value === null || value === undefined) return "";
          return overTime ? value + " s" : "p" + percentile(value);
        });
      }
    });
    var up = Object.assign({}, axis, { size: 64, label: chart.unit, labelSize: 18 });
    return {
      width: widthOf(place),
      height: HEIGHT,
      scales: { x: x, y: logarithmic ? { distr: 3 } : { range: function (plot, least, most) { return [Math.min(0, least), (most || 1) * 1.05]; } } },
      axes: [across, up],
      legend: { live: false },
      cursor: { drag: { x: true, y: false } },
      hooks: { drawClear: overTime ? [marked] : [] },
      series: [{ label: overTime ? "s" : "percentile" }].concat(chart.lines.map(function (line, index) {
        return { label: line.label, stroke: colour.lines[index % colour.lines.length], width: 1.5, spanGaps: false, points: { show: chart.x.length < 60 } };
      }))
    };
  }

  /* A logarithmic axis has no place for 0. */
  function values(line, logarithmic) {
    return line.values.map(function (value) { return logarithmic && value !== null && value <= 0 ? null : value; });
  }

  function hasInk(canvas) {
    var pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    var first = pixels[3];
    for (var place = 3; place < pixels.length; place += 4) if (pixels[place] !== first) return true;
    return false;
  }

  /* For whoever drives the browser. */
  function note(figure) {
    var canvas = figure.querySelector("canvas");
    figure.dataset.drawn = canvas && hasInk(canvas) ? "yes" : "no";
  }

  function lines(chart) {
    var figure = document.getElementById(chart.id);
    var place = figure.querySelector(".plot");
    var button = figure.querySelector("button.axis");
    var out = figure.querySelector("output");
    var logarithmic = chart.logarithmic;
    var plot = null;
    var at = 0;

    function draw() {
      if (plot) plot.destroy();
      var lines = chart.lines.map(function (line) { return values(line, logarithmic); });
      plot = new uPlot(options(chart, place, logarithmic), [chart.x].concat(lines), place);
      requestAnimationFrame(function () { note(figure); });
    }

    function say() {
      var where = chart.over === "time" ? chart.x[at] + " s: " : "p" + percentile(chart.x[at]) + ": ";
      out.textContent = where + chart.lines.map(function (line) {
        return line.label + " " + number(line.values[at]) + " " + chart.unit;
      }).join(", ");
    }

    place.addEventListener("keydown", function (event) {
      var steps = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
      var step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      at = Math.min(chart.x.length - 1, Math.max(0, at + step));
      plot.setCursor({ left: plot.valToPos(chart.x[at], "x"), top: HEIGHT / 3 });
      say();
    });
    place.addEventListener("mousemove", function () {
      if (plot.cursor.idx === null || plot.cursor.idx === undefined) return;
      at = plot.cursor.idx;
      say();
    });
    if (button) {
      button.hidden = false;
      button.addEventListener("click", function () {
        logarithmic = !logarithmic;
        button.setAttribute("aria-pressed", String(logarithmic));
        draw();
      });
    }
    draw();
    drawn.push(draw);
  }

  function heat(map) {
    var figure = document.getElementById("heat");
    var place = figure.querySelector(".plot");
    var out = figure.querySelector("output");
    var rows = map.columns[0].length;
    var most = 1;
    map.columns.forEach(function (column) { column.forEach(function (count) { most = Math.max(most, count); }); });
    var at = 0;

    function draw() {
      var colour = colours();
      var width = widthOf(place);
      var scale = window.devicePixelRatio || 1;
      var canvas = document.createElement("canvas");
      canvas.width = width * scale;
      canvas.height = HEIGHT * scale;
      canvas.style.width = width + "px";
      canvas.style.height = HEIGHT + "px";
      var pen = canvas.getContext("2d");
      pen.scale(scale, scale);
      var left = 64, bottom = 30, top = 8;
      var wide = (width - left - 10) / map.columns.length;
      var high = (HEIGHT - bottom - top) / rows;
      map.columns.forEach(function (column, x) {
        column.forEach(function (count, y) {
          if (count === 0) return;
          var ink = 0.12 + 0.88 * Math.log(1 + count) / Math.log(1 + most);
          pen.fillStyle = "rgba(" + colour.heat.join(",") + "," + ink.toFixed(3) + ")";
          pen.fillRect(left + x * wide, HEIGHT - bottom - (y + 1) * high, Math.ceil(wide), Math.ceil(high));
        });
      });
      pen.fillStyle = colour.ink;
      pen.font = "12px system-ui, sans-serif";
      pen.textAlign = "right";
      var every = Math.max(1, Math.ceil(rows / 8));
      for (var y = 0; y < rows; y += every) {
        var ms = map.lowest_ms * Math.pow(map.factor, y);
        pen.fillText(Number(ms.toPrecision(2)) + " ms", left - 6, HEIGHT - bottom - y * high);
      }
      pen.textAlign = "center";
      var labels = Math.max(2, Math.min(8, Math.floor(width / 110)));
      for (var label = 0; label < labels; label += 1) {
        var seconds = map.begins_s[0] + (map.ends_s - map.begins_s[0]) * label / (labels - 1);
        var x = left + (width - left - 10) * label / (labels - 1);
        pen.fillText(Math.round(seconds) + " s", Math.min(x, width - 18), HEIGHT - 10);
      }
      place.replaceChildren(canvas);
      note(figure);
    }

    place.addEventListener("keydown", function (event) {
      var steps = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
      var step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      at = Math.min(map.columns.length - 1, Math.max(0, at + step));
      var column = map.columns[at];
      var total = column.reduce(function (sum, count) { return sum + count; }, 0);
      var peak = column.indexOf(Math.max.apply(null, column));
      var ms = map.lowest_ms * Math.pow(map.factor, peak);
      out.textContent = map.begins_s[at] + " s: " + total + " transactions, most of about " + Number(ms.toPrecision(2)) + " ms";
    });
    draw();
    drawn.push(draw);
  }

  function redraw() { drawn.forEach(function (draw) { draw(); }); }

  data.charts.forEach(lines);
  if (data.heat) heat(data.heat);
  dark.addEventListener("change", redraw);
  var width = window.innerWidth;
  window.addEventListener("resize", function () {
    if (window.innerWidth !== width) { width = window.innerWidth; redraw(); }
  });
  window.addEventListener("beforeprint", function () { onPaper = true; redraw(); });
  window.addEventListener("afterprint", function () { onPaper = false; redraw(); });
  requestAnimationFrame(function () {
    var root = document.documentElement;
    root.dataset.requests = String(performance.getEntriesByType("resource").length);
    root.dataset.overflow = String(root.scrollWidth - window.innerWidth);
  });
})();
