// Draws the report's charts from the numbers embedded in the page. Colours follow the page's style sheet, so a change
// between light and dark redraws them.
(function () {
  'use strict';
  const study = JSON.parse(document.getElementById('study').textContent);
  const compared = study.candidates.filter((c) => c.eval.delta_nll);

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Whiskers from low to high through each point, along the axis that the dataset names.
  const whiskers = {
    id: 'whiskers',
    beforeDatasetsDraw(chart) {
      const pen = chart.ctx;
      chart.data.datasets.forEach((set, index) => {
        if (!set.whiskers) return;
        const along = set.whiskers;
        const scale = chart.scales[along];
        pen.save();
        pen.strokeStyle = set.borderColor;
        pen.lineWidth = 2;
        chart.getDatasetMeta(index).data.forEach((point, i) => {
          const from = scale.getPixelForValue(set.data[i].low);
          const to = scale.getPixelForValue(set.data[i].high);
          const cap = 5;
          pen.beginPath();
          if (along === 'x') {
            pen.moveTo(from, point.y); pen.lineTo(to, point.y);
            pen.moveTo(from, point.y - cap); pen.lineTo(from, point.y + cap);
            pen.moveTo(to, point.y - cap); pen.lineTo(to, point.y + cap);
          } else {
            pen.moveTo(point.x, from); pen.lineTo(point.x, to);
            pen.moveTo(point.x - cap, from); pen.lineTo(point.x + cap, from);
            pen.moveTo(point.x - cap, to); pen.lineTo(point.x + cap, to);
          }
          pen.stroke();
        });
        pen.restore();
      });
    },
  };

  // Names beside the points; to the left where there is no room on the right, a line lower where two would collide.
  const names = {
    id: 'names',
    afterDatasetsDraw(chart) {
      const pen = chart.ctx;
      const taken = [];
      pen.save();
      pen.font = '12px system-ui, sans-serif';
      pen.fillStyle = colour('--ink');
      pen.textBaseline = 'middle';
      chart.data.datasets.forEach((set, index) => {
        if (!set.names) return;
        chart.getDatasetMeta(index).data.forEach((point, i) => {
          const label = set.data[i].name;
          const width = pen.measureText(label).width;
          const right = point.x + 10 + width < chart.chartArea.right;
          const x = right ? point.x + 10 : point.x - 10 - width;
          let y = point.y - 10;
          while (taken.some((t) => Math.abs(t.y - y) < 14 && x < t.x + t.width && t.x < x + width)) y -= 14;
          taken.push({ x: x, y: y, width: width });
          pen.fillText(label, x, y);
        });
      });
      pen.restore();
    },
  };

  function axis(title, more) {
    return Object.assign({
      title: { display: true, text: title, color: colour('--soft') },
      ticks: { color: colour('--soft'), maxTicksLimit: 6 },
      grid: { color: colour('--line'), borderColor: colour('--line') },
    }, more);
  }

  function options(scales, tip) {
    return {
      animation: false,
      maintainAspectRatio: false,
      layout: { padding: { top: 12, right: 12 } },
      plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => tip(item.raw) } } },
      scales: scales,
    };
  }

  function deltaChart(canvas) {
    const points = compared.map((c) => {
      const d = c.eval.delta_nll;
      return { x: d.mean, y: c.name, low: d.low, high: d.high };
    });
    const tip = (p) => p.y + ': ' + p.x.toFixed(5) + ' [' + p.low.toFixed(5) + ', ' + p.high.toFixed(5) + ']';
    canvas.parentElement.style.height = (90 + 44 * compared.length) + 'px';
    return new Chart(canvas, {
      type: 'scatter',
      data: {
        datasets: [{
          data: points, whiskers: 'x', borderColor: colour('--accent'), backgroundColor: colour('--accent'),
          pointRadius: 5, pointHoverRadius: 7,
        }],
      },
      options: options({
        x: axis('ΔNLL', {
          suggestedMin: 0,
          suggestedMax: Math.max(...points.map((p) => p.high)) * 1.05,
          grid: { color: (at) => (at.tick.value === 0 ? colour('--warm') : colour('--line')), borderColor: colour('--line') },
        }),
        y: axis('', {
          type: 'category', labels: compared.map((c) => c.name), offset: true, title: { display: false },
          ticks: { color: colour('--ink'), font: { size: 13 } },
        }),
      }, tip),
      plugins: [whiskers],
    });
  }

  function sizeChart(canvas) {
    const megabytes = (c) => c.file_bytes / 1e6;
    const measured = compared.filter((c) => c.eval.kl);
    const points = measured.map((c) => {
      const k = c.eval.kl;
      return { x: megabytes(c), y: k.mean, low: k.low, high: k.high, name: c.name };
    });
    const source = { x: megabytes(study.candidates[0]), y: 0, name: study.candidates[0].name };
    const tip = (p) => p.name + ': ' + p.x.toFixed(1) + ' MB, KL ' + p.y.toPrecision(3);
    return new Chart(canvas, {
      type: 'scatter',
      data: {
        datasets: [
          {
            data: points, whiskers: 'y', names: true, borderColor: colour('--accent'),
            backgroundColor: colour('--accent'), pointRadius: 5, pointHoverRadius: 7,
          },
          {
            data: [source], names: true, borderColor: colour('--warm'), backgroundColor: colour('--warm'),
            pointStyle: 'rectRot', pointRadius: 6, pointHoverRadius: 8,
          },
        ],
      },
      options: options({
        x: axis('MB', { suggestedMin: 0, suggestedMax: source.x * 1.05 }),
        y: axis('KL', { suggestedMin: 0, suggestedMax: Math.max(...points.map((p) => p.high)) * 1.1 }),
      }, tip),
      plugins: [whiskers, names],
    });
  }

  const makers = { 'delta-nll': deltaChart, 'size-kl': sizeChart };
  let charts = [];
  function draw() {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    Object.keys(makers).forEach((id) => {
      const canvas = document.getElementById(id);
      if (canvas) charts.push(makers[id](canvas));
    });
  }
  draw();
  if (window.matchMedia) {
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    if (dark.addEventListener) dark.addEventListener('change', draw);
  }
})();
