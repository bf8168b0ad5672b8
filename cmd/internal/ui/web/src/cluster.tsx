// One cluster in depth.
import { useEffect, useState } from 'preact/hooks';
import { ago, Page, read, span } from './data';
import { RolloutsOf } from './rollouts';

/* eslint-disable @typescript-eslint/no-explicit-any */
export function Cluster({ name, page, close }: { name: string; page: Page; close: () => void }) {
  const [cluster, setCluster] = useState<any>(null);
  const [nodes, setNodes] = useState<any>(null);
  const [error, setError] = useState('');
  useEffect(() => {
    let live = true;
    const load = async () => {
      try {
        const document: any = await read(`status/clusters/${encodeURIComponent(name)}.json`);
        if (live) { setCluster(document.status); setError(''); }
      } catch (e) {
        if (live) setError(String((e as Error).message));
      }
    };
    setCluster(null);
    setNodes(null);
    void load();
    read(`nodes/${encodeURIComponent(name)}.json`).then((n) => live && setNodes(n), (e) => live && setNodes({ error: e.message }));
    if (page.publishedAt) return () => { live = false; };
    const timer = setInterval(() => { if (!document.hidden) void load(); }, 5000);
    return () => { live = false; clearInterval(timer); };
  }, [name]);

  const now = Date.now();
  return (
    <main class="cluster" aria-labelledby="cluster-name">
      <p><a href="#/" onClick={close}>All clusters</a></p>
      <h1 id="cluster-name" tabIndex={-1} ref={(h) => { if (h && h.dataset.focused !== name) { h.dataset.focused = name; h.focus(); } }}>{name}</h1>
      {error && <p class="error" role="alert">{error}</p>}
      {cluster && (
        <>
          <p class="lead">{cluster.phase}{cluster.message && `: ${cluster.message}`}</p>
          <p>{[cluster.kubernetesVersion && `Kubernetes ${cluster.kubernetesVersion}`, cluster.release && `release ${cluster.release}`,
            `status changed ${ago(cluster.updatedAt, now)}`].filter(Boolean).join(', ')}</p>
          <RolloutsOf cluster={name} page={page} />
          <Drains nodes={cluster.nodes ?? []} now={now} />
          <Part title="Plan of the last converge" empty="Nothing differs." rows={(cluster.plan ?? []).flatMap((c: any) =>
            (c.reasons ?? []).map((r: any) => [`${c.operation} ${c.stack}`, c.effect === 'ReplacesNodes' ? 'replaces nodes' : c.effect === 'InPlace' ? 'in place' : '', r.field, r.old ?? '', r.new ?? '']))}
            heads={['Change', 'Effect', 'Field', 'Old', 'New']} />
          <Upgrade upgrade={cluster.upgrade} now={now} />
          <Part title="Conditions" empty="None yet." heads={['Condition', 'Status', 'Reason', 'Since', 'Message']}
            rows={(cluster.conditions ?? []).map((c: any) => [c.type, c.status, c.reason, ago(c.lastTransitionTime, now), c.message ?? ''])} />
          <Part title="Stacks" empty="None yet." heads={['Stack', 'Status', 'Since', 'Waits for']}
            rows={(cluster.stacks ?? []).map((s: any) => [s.name, s.status, ago(s.since, now),
              s.delay ? `${s.delay.message}${s.delay.until ? `, until ${ago(s.delay.until, now)}` : ''}` : [s.resource, s.reason].filter(Boolean).join(': ')])} />
        </>
      )}
      {nodes?.error ? <p class="error">Pools and nodes were not read: {nodes.error}</p>
          : nodes && (
            <>
              <Part title="Pools and nodes by version" empty="No pool." heads={['Pool', 'Launch template', 'Kubelet', 'Nodes', 'Ready', 'Desired']}
                rows={(nodes.pools ?? []).flatMap((p: any) => (p.versions ?? []).map((v: any) => [p.name, v.template || 'unknown', v.kubelet || 'unknown', v.nodes, p.ready ?? 'unknown', p.desired]))} />
              {nodes.unread && <p class="error">{nodes.unread}</p>}
            </>
          )}
    </main>
  );
}

function Drains({ nodes, now }: { nodes: any[]; now: number }) {
  return (
    <section aria-labelledby="drains">
      <h2 id="drains">Drains and joins</h2>
      {nodes.length === 0 ? <p>No node is slow.</p> : (
        <ul class="drains">
          {nodes.map((n) => (
            <li key={n.instance}>
              <strong>{n.name || n.instance}</strong> of {n.pool}: {n.state}, since {ago(n.since, now)}
              {n.estimateSeconds != null && <>, about <strong>{span(n.estimateSeconds)}</strong> left</>}
              {n.message && <p>{n.message}</p>}
              <ul>{(n.blocked ?? []).map((b: any) => (
                <li key={b.pod}>pod <code>{b.pod}</code>: {b.why}{b.budgets?.length > 0 && <>; budget <code>{b.budgets.join(', ')}</code></>}</li>
              ))}</ul>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Upgrade({ upgrade, now }: { upgrade: any; now: number }) {
  if (!upgrade) return null;
  const steps: any[] = upgrade.steps ?? [];
  const times = steps.flatMap((s) => [s.started, s.ended]).filter(Boolean).map((t: string) => Date.parse(t));
  const ended = upgrade.ended ? Date.parse(upgrade.ended) : now;
  const from = Math.min(...times, ended), to = Math.max(...times, ended);
  const percent = (t: number) => (100 * (t - from)) / Math.max(1, to - from);
  return (
    <section aria-labelledby="upgrade">
      <h2 id="upgrade">Upgrade to {upgrade.to}: {upgrade.phase}</h2>
      {upgrade.message && <p>{upgrade.message}</p>}
      {upgrade.at && <p>Begins {ago(upgrade.at, now)}.</p>}
      <ol class="steps">
        {steps.map((s) => {
          const begin = s.started ? Date.parse(s.started) : null;
          const end = s.ended ? Date.parse(s.ended) : ended;
          const words = begin == null ? 'waits' : `${s.ended ? 'took' : 'for'} ${span(Math.round((end - begin) / 1000))}`;
          return (
            <li key={s.name}>
              <span>{s.name}, {words}</span>
              <span class="line" aria-hidden="true">
                {begin != null && <span class={s.ended ? 'bar' : 'bar open'} style={{ left: `${percent(begin)}%`, width: `${Math.max(1, percent(end) - percent(begin))}%` }} />}
              </span>
            </li>
          );
        })}
      </ol>
      {(upgrade.checks ?? []).map((c: any) => <p key={c.name}><strong>{c.name}</strong>{c.blocks ? ' blocks: ' : ': '}{c.message} {c.next}</p>)}
    </section>
  );
}

function Part({ title, heads, rows, empty }: { title: string; heads: string[]; rows: any[][]; empty: string }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {rows.length === 0 ? <p>{empty}</p> : (
        <table class="stack">
          <thead><tr>{heads.map((h) => <th scope="col" key={h}>{h}</th>)}</tr></thead>
          <tbody>{rows.map((r, i) => <tr key={i}>{r.map((c, j) => <td key={j} data-head={heads[j]}>{c}</td>)}</tr>)}</tbody>
        </table>
      )}
    </section>
  );
}
