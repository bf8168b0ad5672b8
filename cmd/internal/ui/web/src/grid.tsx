// The fleet as squares on one canvas. Only the visible part is drawn, so its cost does not depend on the size of the fleet.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Row, valueOf } from './data';

const step = 16;
const size = 13;
const heading = 26;

interface Section { title: string; top: number; rows: Row[]; first: number }

interface Props {
  rows: Row[];
  groupBy: string;
  colorOf: (row: Row) => string;
  open: (name: string) => void;
}

export function Grid({ rows, groupBy, colorOf, open }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [active, setActive] = useState(0);
  const [seen, setSeen] = useState<{ row: Row; x: number; y: number } | null>(null);
  const columns = Math.max(1, Math.floor((width - 4) / step));

  const { sections, ordered, height } = useMemo(() => {
    const groups = new Map<string, Row[]>();
    for (const row of rows) {
      const key = valueOf(row, groupBy);
      const group = groups.get(key);
      if (group) group.push(row);
      else groups.set(key, [row]);
    }
    const sections: Section[] = [];
    const ordered: Row[] = [];
    let top = 0;
    for (const title of [...groups.keys()].sort()) {
      const members = groups.get(title)!;
      sections.push({ title, top, rows: members, first: ordered.length });
      for (const row of members) ordered.push(row);
      top += (groupBy ? heading : 4) + Math.ceil(members.length / columns) * step + 6;
    }
    return { sections, ordered, height: top };
  }, [rows, groupBy, columns]);

  const head = groupBy ? heading : 4;
  const current = ordered[Math.min(active, ordered.length - 1)];

  useEffect(() => {
    const box = scroller.current!;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    setWidth(box.clientWidth);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    let frame = 0;
    const draw = () => {
      frame = 0;
      const box = scroller.current, surface = canvas.current;
      if (!box || !surface) return;
      const ratio = devicePixelRatio, w = box.clientWidth, h = box.clientHeight, from = box.scrollTop;
      if (surface.width !== Math.round(w * ratio) || surface.height !== Math.round(h * ratio)) {
        surface.width = Math.round(w * ratio);
        surface.height = Math.round(h * ratio);
        surface.style.width = `${w}px`;
        surface.style.height = `${h}px`;
      }
      const style = getComputedStyle(surface);
      const text = style.color, mark = style.backgroundColor;
      const pen = surface.getContext('2d')!;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, w, h);
      pen.font = '13px system-ui, sans-serif';
      for (const section of sections) {
        const lines = Math.ceil(section.rows.length / columns);
        const y = section.top - from;
        if (y > h || y + head + lines * step < 0) continue;
        if (groupBy) {
          pen.fillStyle = text;
          pen.fillText(`${section.title} (${section.rows.length})`, 2, y + 18);
        }
        const first = Math.max(0, Math.floor((-y - head) / step));
        const last = Math.min(lines, Math.ceil((h - y - head) / step));
        for (let i = first * columns; i < Math.min(section.rows.length, last * columns); i++) {
          const row = section.rows[i];
          const left = 2 + (i % columns) * step, at = y + head + Math.floor(i / columns) * step;
          pen.fillStyle = colorOf(row);
          pen.fillRect(left, at, size, size);
          // Shape repeats what color says: a cross for Failing, a dot for Degraded and Unknown.
          if (row.health === 'Failing') {
            pen.strokeStyle = mark;
            pen.lineWidth = 2;
            pen.beginPath();
            pen.moveTo(left + 3, at + 3); pen.lineTo(left + size - 3, at + size - 3);
            pen.moveTo(left + size - 3, at + 3); pen.lineTo(left + 3, at + size - 3);
            pen.stroke();
          } else if (row.health === 'Degraded' || row.health === 'Unknown') {
            pen.fillStyle = mark;
            pen.fillRect(left + 5, at + 5, 3, 3);
          }
          if (row === current && document.activeElement === box) {
            pen.strokeStyle = text;
            pen.lineWidth = 2;
            pen.strokeRect(left - 1, at - 1, size + 2, size + 2);
          }
        }
      }
    };
    const soon = () => { frame ||= requestAnimationFrame(draw); };
    const box = scroller.current!;
    const dark = matchMedia('(prefers-color-scheme: dark)');
    box.addEventListener('scroll', soon, { passive: true });
    box.addEventListener('focus', soon);
    box.addEventListener('blur', soon);
    dark.addEventListener('change', soon);
    draw();
    return () => {
      cancelAnimationFrame(frame);
      box.removeEventListener('scroll', soon);
      box.removeEventListener('focus', soon);
      box.removeEventListener('blur', soon);
      dark.removeEventListener('change', soon);
    };
  }, [sections, columns, colorOf, current, groupBy, width]);

  const at = (event: MouseEvent): Row | undefined => {
    const box = scroller.current!.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top + scroller.current!.scrollTop;
    const section = sections.findLast((s) => s.top <= y);
    const column = Math.floor((x - 2) / step), line = section ? Math.floor((y - section.top - head) / step) : -1;
    return section && line >= 0 && column >= 0 && column < columns ? section.rows[line * columns + column] : undefined;
  };

  const move = (index: number) => {
    const next = Math.max(0, Math.min(ordered.length - 1, index));
    setActive(next);
    const section = sections.findLast((s) => s.first <= next);
    const box = scroller.current!;
    if (!section) return;
    const y = section.top + head + Math.floor((next - section.first) / columns) * step;
    if (y < box.scrollTop + head) box.scrollTop = Math.max(0, y - head);
    else if (y + step > box.scrollTop + box.clientHeight) box.scrollTop = y + step - box.clientHeight;
  };

  const key = (event: KeyboardEvent) => {
    const moves: Record<string, number> = {
      ArrowRight: active + 1, ArrowLeft: active - 1, ArrowDown: active + columns, ArrowUp: active - columns,
      Home: 0, End: ordered.length - 1, PageDown: active + columns * 10, PageUp: active - columns * 10,
    };
    if (event.key in moves) {
      event.preventDefault();
      move(moves[event.key]);
    } else if ((event.key === 'Enter' || event.key === ' ') && current) {
      event.preventDefault();
      open(current.name);
    }
  };

  return (
    <div class="grid">
      <div ref={scroller} class="scroller" tabIndex={0} role="application" aria-roledescription="grid of clusters"
        aria-label="Clusters. Use the arrow keys to move, and Enter to open a cluster." aria-describedby="active"
        onKeyDown={key}
        onClick={(e) => { const row = at(e); if (row) open(row.name); }}
        onMouseMove={(e) => { const row = at(e); setSeen(row ? { row, x: e.clientX, y: e.clientY } : null); }}
        onMouseLeave={() => setSeen(null)}>
        <div class="extent" style={{ height: `${height}px` }}><canvas ref={canvas} aria-hidden="true" /></div>
      </div>
      <p id="active" class="active" role="status">{current ? describe(current) : 'no cluster matches'}</p>
      {seen && (
        <div class="tip" aria-hidden="true" style={{ left: `${Math.min(seen.x + 12, innerWidth - 240)}px`, top: `${seen.y + 14}px` }}>
          {describe(seen.row)}
        </div>
      )}
    </div>
  );
}

export function describe(row: Row): string {
  return [
    `${row.name}: ${row.health}`, row.reason, row.kubernetesVersion && `Kubernetes ${row.kubernetesVersion}`, row.waitsFor,
  ].filter(Boolean).join(', ');
}
