// The page of drover ui: the fleet, one cluster in depth, and rollouts.
import { render } from 'preact';
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import { Cluster } from './cluster';
import { ago, matcher, Page, read, Row, valueOf } from './data';
import { Grid } from './grid';
import { Nav, Rollouts, RolloutView } from './rollouts';

const healths = ['Failing', 'Degraded', 'Changing', 'Unknown', 'Healthy', 'Deleted'];
const most = 200; // rows of the table at once
const palette = 10; // colors of --c0 to --c9

interface Route { view: string; name: string }

function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  const named = /^#\/(clusters|rollouts)(?:\/(.+))?$/.exec(hash);
  return named ? { view: named[1], name: decodeURIComponent(named[2] ?? '') } : { view: '', name: '' };
}

function useColors(values: string[], by: string) {
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const changed = () => setTheme((n) => n + 1);
    dark.addEventListener('change', changed);
    return () => dark.removeEventListener('change', changed);
  }, []);
  return useMemo(() => {
    const style = getComputedStyle(document.documentElement);
    const colors = new Map<string, string>();
    values.forEach((v, i) => colors.set(v, style.getPropertyValue(by === 'health' ? `--${v}` : `--c${i % palette}`).trim()));
    return colors;
  }, [values.join('\n'), by, theme]);
}

function App() {
  const [page, setPage] = useState<Page | null>(null);
  const [rows, setRows] = useState<Row[] | null>(null);
  const [readAt, setReadAt] = useState('');
  const [error, setError] = useState('');
  const [filter, setFilter] = useState('');
  const [health, setHealth] = useState('');
  const [groupBy, setGroupBy] = useState('');
  const [colorBy, setColorBy] = useState('health');
  const [view, setView] = useState<'grid' | 'table'>('grid');
  const route = useRoute();

  useEffect(() => {
    let timer = 0;
    const load = async () => {
      try {
        const [about, fleet] = await Promise.all([read<Page>('page.json'), read<{ clusters: Row[] }>('status/fleet.json')]);
        setPage(about);
        setRows(fleet.clusters);
        setReadAt(about.publishedAt ?? new Date().toISOString());
        setError('');
        if (about.publishedAt) return;
      } catch (e) {
        setError(String((e as Error).message));
      }
      timer = window.setTimeout(() => (document.hidden ? addEventListener('visibilitychange', load, { once: true }) : void load()), 15000);
    };
    void load();
    return () => clearTimeout(timer);
  }, []);

  const matching = useMemo(() => {
    const matches = matcher(filter);
    return (rows ?? []).filter((r) => (health ? r.health === health : r.health !== 'Deleted') && matches(r));
  }, [rows, filter, health]);
  const labels = useMemo(() => [...new Set((rows ?? []).flatMap((r) => Object.keys(r.labels ?? {})))].sort(), [rows]);
  const counts = useMemo(() => {
    const all = new Map<string, number>();
    for (const row of matching) all.set(valueOf(row, colorBy), (all.get(valueOf(row, colorBy)) ?? 0) + 1);
    const values = [...all.keys()].sort(colorBy === 'health' ? (a, b) => healths.indexOf(a) - healths.indexOf(b) : undefined);
    return values.map((value) => ({ value, count: all.get(value)! }));
  }, [matching, colorBy]);
  const colors = useColors(counts.map((c) => c.value), colorBy);
  const colorOf = useCallback((row: Row) => colors.get(valueOf(row, colorBy)) ?? '#888', [colors, colorBy]);
  const open = useCallback((name: string) => { location.hash = `#/clusters/${encodeURIComponent(name)}`; }, []);

  if (page && route.view === 'clusters' && route.name) return <Cluster name={route.name} page={page} close={() => undefined} />;
  if (page && route.view === 'rollouts') return route.name ? <RolloutView name={route.name} page={page} /> : <Rollouts page={page} />;
  return (
    <main>
      <Nav at="fleet" />
      <header>
        <h1>Fleet</h1>
        <p>{page && `account ${page.account}, ${page.region}, ${page.publishedAt ? 'published' : 'read'} ${ago(readAt, Date.now())}`}</p>
      </header>
      {error && <p class="error" role="alert">{error}</p>}
      <form class="controls" onSubmit={(e) => e.preventDefault()}>
        <label class="wide">Filter <input type="search" aria-label="Filter" value={filter} placeholder="name, or env=prod,tier in (a,b)"
          onInput={(e) => setFilter(e.currentTarget.value)} /></label>
        <label>Health <select aria-label="Health" value={health} onChange={(e) => setHealth(e.currentTarget.value)}>
          <option value="">all</option>{healths.map((h) => <option key={h}>{h}</option>)}</select></label>
        <label>Group by <select aria-label="Group by" value={groupBy} onChange={(e) => setGroupBy(e.currentTarget.value)}>
          <option value="">nothing</option><option>health</option><option>version</option><option>release</option><option>reason</option>
          {labels.map((l) => <option key={l} value={`label:${l}`}>label {l}</option>)}</select></label>
        <label>Color by <select aria-label="Color by" value={colorBy} onChange={(e) => setColorBy(e.currentTarget.value)}>
          <option>health</option><option>version</option><option>release</option><option>reason</option></select></label>
        <label>View <select aria-label="View" value={view} onChange={(e) => setView(e.currentTarget.value as 'grid' | 'table')}>
          <option value="grid">grid</option><option value="table">table</option></select></label>
      </form>
      <ul class="legend" aria-label="Colors">
        {counts.map(({ value, count }) => <li key={value}><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" fill={colors.get(value)} /></svg> {value} {count}</li>)}
      </ul>
      {rows === null ? !error && <p role="status">Reading the fleet…</p>
        : view === 'grid' ? <Grid rows={matching} groupBy={groupBy} colorOf={colorOf} open={open} />
          : <List rows={matching} />}
    </main>
  );
}

function List({ rows }: { rows: Row[] }) {
  const [shown, setShown] = useState(most);
  const now = Date.now();
  return (
    <>
      <table class="stack">
        <caption>{rows.length} clusters</caption>
        <thead><tr>{['Name', 'Health', 'Kubernetes', 'Release', 'Reason', 'Changed', 'Waits for'].map((h) => <th scope="col" key={h}>{h}</th>)}</tr></thead>
        <tbody>{rows.slice(0, shown).map((r) => (
          <tr key={r.name}>
            <td data-head="Name"><a href={`#/clusters/${encodeURIComponent(r.name)}`}>{r.name}</a></td>
            <td data-head="Health">{r.health}</td><td data-head="Kubernetes">{r.kubernetesVersion}</td>
            <td data-head="Release">{r.release}{r.target && ` → ${r.target}`}</td><td data-head="Reason">{r.reason}</td>
            <td data-head="Changed">{ago(r.updatedAt, now)}</td><td data-head="Waits for">{r.waitsFor}</td>
          </tr>
        ))}</tbody>
      </table>
      {rows.length > shown && <button type="button" onClick={() => setShown(shown + most)}>Show {Math.min(most, rows.length - shown)} more</button>}
    </>
  );
}

render(<App />, document.getElementById('app')!);
