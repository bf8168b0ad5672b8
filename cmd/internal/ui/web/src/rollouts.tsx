// All rollouts, and one rollout: its stages from left to right, why nothing starts now, and the decisions that people make.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { Failure, Member, Page, Plan, Rollout, RolloutRow, Stage, ago, decide, read, short, until } from './data';

const squares = 400; // of one stage
const listed = 200; // members in the table at once

// Members that need attention come first.
const urgency = ['Failed', 'Blocked', 'NotRolledBack', 'Withdrawing', 'Started', 'Changing', 'Settling', 'Waiting', 'Good', 'RolledBack', 'Skipped'];
const flying = ['Started', 'Withdrawing', 'Changing', 'Settling'];
const ended = ['Done', 'Aborted', 'Superseded'];

export function Nav({ at }: { at: 'fleet' | 'rollouts' }) {
  return (
    <nav aria-label="Views">
      <a href="#/" aria-current={at === 'fleet' ? 'page' : undefined}>Fleet</a>
      <a href="#/rollouts" aria-current={at === 'rollouts' ? 'page' : undefined}>Rollouts</a>
    </nav>
  );
}

// useDocument reads a document, and reads it again every few seconds unless the page is a published copy.
export function useDocument<T>(path: string, page: Page, seconds: number): [T | null, string, () => void] {
  const [document_, setDocument] = useState<T | null>(null);
  const [error, setError] = useState('');
  const [again, setAgain] = useState(0);
  useEffect(() => setDocument(null), [path]);
  useEffect(() => {
    let live = true;
    const load = () => read<T>(path).then(
      (d) => { if (live) { setDocument(d); setError(''); } },
      (e) => { if (live) setError(String((e as Error).message)); },
    );
    void load();
    const timer = page.publishedAt ? 0 : setInterval(() => { if (!document.hidden) void load(); }, seconds * 1000);
    return () => { live = false; clearInterval(timer); };
  }, [path, again]);
  return [document_, error, useCallback(() => setAgain((n) => n + 1), [])];
}

export function Rollouts({ page }: { page: Page }) {
  const [list, error] = useDocument<{ rollouts: RolloutRow[] }>('status/rollouts.json', page, 5);
  return (
    <main>
      <Nav at="rollouts" />
      <h1>Rollouts</h1>
      {error && <p class="error" role="alert">{error}</p>}
      {list && (list.rollouts.length === 0 ? <p>There is no rollout. `drover apply` uploads one.</p> : (
        <table class="stack">
          <thead><tr>{['Name', 'State', 'Run', 'Stage', 'Good', 'Failed', 'Now'].map((h) => <th scope="col" key={h}>{h}</th>)}</tr></thead>
          <tbody>{list.rollouts.map((r) => (
            <tr key={r.name}>
              <td data-head="Name"><a href={`#/rollouts/${encodeURIComponent(r.name)}`}>{r.name}</a></td>
              <td data-head="State">{r.state}</td><td data-head="Run">{r.run ?? ''}</td><td data-head="Stage">{r.stage}</td>
              <td data-head="Good">{r.run ? `${r.good} of ${r.members}` : ''}</td><td data-head="Failed">{r.run ? r.failed : ''}</td>
              <td data-head="Now">{r.message}</td>
            </tr>
          ))}</tbody>
        </table>
      ))}
    </main>
  );
}

interface Wish { verb: string; plan?: string; stage?: string; clusters?: string[]; explains: string }

export function RolloutView({ name, page }: { name: string; page: Page }) {
  const [rollout, error, reload] = useDocument<Rollout>(`status/rollouts/${encodeURIComponent(name)}.json`, page, 3);
  const [meanings] = useDocument<Record<string, string>>('meanings.json', { ...page, publishedAt: 'once' }, 0);
  const [wish, setWish] = useState<Wish | null>(null);
  const run = rollout?.run;
  const active = run && !ended.includes(run.state) ? run : undefined;
  const now = Date.now();
  const wished = (w: Wish) => page.decides ? () => setWish(w) : undefined;
  return (
    <main class="rollout" aria-labelledby="rollout-name">
      <Nav at="rollouts" />
      <h1 id="rollout-name" tabIndex={-1} ref={(h) => { if (h && h.dataset.focused !== name) { h.dataset.focused = name; h.focus(); } }}>{name}</h1>
      {error && <p class="error" role="alert">{error}</p>}
      {rollout && (
        <>
          <p class="lead"><strong>{rollout.state}</strong>{run && `, run ${run.number} ${ended.includes(run.state) ? `was ${run.state} ${ago(run.ended, now)}` : `began ${ago(run.started, now)}`}`}</p>
          <p class="why" role="status">{rollout.message}</p>
          {(rollout.problems ?? []).map((p) => <p class="error" key={p.file + p.message}>{p.file}: {p.message}</p>)}
          {page.decides && <Actions rollout={rollout} active={Boolean(active)} ask={setWish} />}
          {rollout.plan && rollout.plan.digest !== run?.plan && <NewestPlan rollout={rollout} page={page} start={!active && rollout.state === 'Planned'
            ? wished({ verb: 'Start', plan: rollout.plan.digest, explains: `Starts a run over ${count(rollout.plan.members, 'cluster')}.` }) : undefined} />}
          {rollout.plan && rollout.plan.digest === run?.plan && !active && rollout.state === 'Planned' && <NewestPlan rollout={rollout} page={page}
            start={wished({ verb: 'Start', plan: rollout.plan.digest, explains: `Starts a run over ${count(rollout.plan.members, 'cluster')}.` })} />}
          {run && (
            <>
              <section aria-label="Stages">
                <h2>Stages of run {run.number}</h2>
                <p>plan <code>{run.plan}</code> <PlanDetails digest={run.plan} page={page} /></p>
                <ol class="stages" tabIndex={0} aria-label="Stages, in order">
                  {run.stages.map((s) => <StageCard key={s.number} stage={s} now={now} meanings={meanings ?? {}}
                    approve={active && s.needs ? wished({ verb: 'Approve', plan: run.plan, stage: s.name,
                      explains: s.needs === 'Before' ? `Lets ${s.name} begin: ${count(s.members.length, 'cluster')}.` : `Lets ${s.name} pass.` }) : undefined} />)}
                </ol>
              </section>
              <Members run={run} now={now} meanings={meanings ?? {}}
                ask={active && page.decides ? (verb, cluster) => setWish({ verb, plan: run.plan, clusters: [cluster],
                  explains: verb === 'Retry' ? `Gives ${cluster} another attempt with the release of the plan.` : `Takes ${cluster} out of the run. It keeps what it has.` }) : undefined} />
            </>
          )}
          <Answers answers={rollout.answers ?? {}} />
          {wish && <Confirm rollout={name} wish={wish} close={(made) => { setWish(null); if (made) reload(); }} />}
        </>
      )}
    </main>
  );
}

function Actions({ rollout, active, ask }: { rollout: Rollout; active: boolean; ask: (w: Wish) => void }) {
  const run = rollout.run;
  const plan = active ? run?.plan : rollout.plan?.digest;
  const paused = active ? run?.pausedBy : rollout.pausedBy;
  const halted = active && run?.halt;
  const all: Wish[] = [];
  if (!paused) all.push({ verb: 'Pause', explains: active ? 'Nothing starts until a Resume. What has begun finishes.' : 'No run starts until a Resume.' });
  if ((paused || halted) && plan) all.push({ verb: 'Resume', plan, explains: 'Ends the pause or the halt.' });
  if (active && !halted) all.push({ verb: 'Reject', explains: 'Halts the run. What has begun finishes.' });
  if (active) {
    all.push({ verb: 'Rollback', plan, stage: halted && run?.halt?.stage ? run.stages[run.halt.stage - 1].name : undefined,
      explains: 'Returns the members that the run changed in its halted or open stage to their previous release, as EKS allows.' });
    all.push({ verb: 'Abort', explains: 'Ends the run. What has begun finishes, and every member keeps what it has.' });
  }
  return <p class="actions">{all.map((w) => <button type="button" key={w.verb} onClick={() => ask(w)}>{w.verb}</button>)}</p>;
}

function NewestPlan({ rollout, page, start }: { rollout: Rollout; page: Page; start?: () => void }) {
  const plan = rollout.plan!;
  return (
    <section aria-label="Newest plan">
      <h2>Newest plan</h2>
      <p>{count(plan.members, 'cluster')} in {count(plan.stages?.length ?? 0, 'stage')}, {plan.leftOut} left out,
        release {plan.subject.releases.map((r) => `${r.name}@${short(r.sha256)}`).join(', ')}</p>
      <p>digest <code>{plan.digest}</code> <PlanDetails digest={plan.digest} page={page} /></p>
      {(plan.difference ?? []).length > 0 && <><p>Since the plan of the newest run:</p><ul>{plan.difference!.map((d) => <li key={d}>{d}</li>)}</ul></>}
      {start && <p class="actions"><button type="button" onClick={start}>Start</button></p>}
    </section>
  );
}

function PlanDetails({ digest, page }: { digest: string; page: Page }) {
  const [shown, setShown] = useState(false);
  return (
    <>
      <button type="button" class="link" aria-expanded={shown} onClick={() => setShown(!shown)}>{shown ? 'Hide the plan' : 'Show the plan'}</button>
      {shown && <PlanTable digest={digest} page={page} />}
    </>
  );
}

function PlanTable({ digest, page }: { digest: string; page: Page }) {
  const [plan, error] = useDocument<Plan>(`rollouts/plans/${digest}.json`, { ...page, publishedAt: 'once' }, 0);
  if (error) return <span class="error">{error}</span>;
  if (!plan) return null;
  const heads = ['Stage', 'Clusters', 'At once', 'Failures', 'Settle', 'Soak', 'Gates'];
  return (
    <>
      <table class="stack">
        <caption>Plan {short(digest)}</caption>
        <thead><tr>{heads.map((h) => <th scope="col" key={h}>{h}</th>)}</tr></thead>
        <tbody>{plan.stages.map((s) => (
          <tr key={s.number}>
            {[`${s.number} ${s.name}`, some(s.members.map((m) => `${m.cluster} ${m.from.release || 'none'} → ${m.to.release}`)), s.maxConcurrency,
              `${s.maxFailures}${s.sharedFailures && s.name !== s.fromStage ? ` in all of ${s.fromStage}` : ''}, ${s.budget}`, s.settle, s.soak,
              [s.before?.length && 'approval before', s.window && 'window', s.alarms?.length && count(s.alarms.length, 'alarm'), s.after?.length && 'approval after']
                .filter(Boolean).join(', ')].map((c, i) => <td key={heads[i]} data-head={heads[i]}>{c}</td>)}
          </tr>
        ))}</tbody>
      </table>
      {(plan.leftOut ?? []).length > 0 && <p>Left out: {some(plan.leftOut!.map((l) => `${l.cluster} (${l.reason})`))}</p>}
    </>
  );
}

function some(list: string[]): string {
  return list.length > 20 ? `${list.slice(0, 20).join(', ')} and ${list.length - 20} more` : list.join(', ');
}

function StageCard({ stage, now, meanings, approve }: { stage: Stage; now: number; meanings: Record<string, string>; approve?: () => void }) {
  const atRisk = flying.reduce((n, s) => n + (stage.counts[s] ?? 0), 0);
  const restarted = stage.members.filter((m) => m.regressedAt).length;
  const ordered = stage.members.length > squares
    ? [...stage.members].sort((a, b) => urgency.indexOf(a.state) - urgency.indexOf(b.state)) : stage.members;
  return (
    <li class={`stage ${stage.state}`} aria-label={`Stage ${stage.name}`}>
      <h3>{stage.number} {stage.name}</h3>
      <p><strong>{stage.state}</strong>{stage.passed && `, ${ago(stage.passed, now)}`}</p>
      <div class="squares">
        {ordered.slice(0, squares).map((m) => (
          <a key={m.cluster} class={`square ${m.state}`} href={`#/clusters/${encodeURIComponent(m.cluster)}`}
            title={`${m.cluster}: ${words(m)}. ${meanings[`${m.state} ${m.reason ?? ''}`.trim()] ?? ''}`}
            aria-label={`${m.cluster}: ${words(m)}`}>{glyph(m.state)}</a>
        ))}
      </div>
      {ordered.length > squares && <p>and {ordered.length - squares} more</p>}
      <p>{stage.counts.Good ?? 0} of {stage.members.length} Good, {atRisk} of {stage.maxConcurrency} at risk</p>
      <p class={stage.failed > stage.maxFailures ? 'error' : undefined}>{stage.failed} of {stage.maxFailures} failed</p>
      {stage.soakUntil && !stage.passed && <p>{until(stage.soakUntil, now) ? `soaks, ${until(stage.soakUntil, now)} left` : 'the soak is over'}</p>}
      {restarted > 0 && <p>soak restarted for {count(restarted, 'member')}</p>}
      {stage.alarmSince && <p class="error">an alarm is in ALARM, {ago(stage.alarmSince, now)}</p>}
      {stage.rollback && <p>rollback: {stage.rollback}</p>}
      {stage.needs && <p>needs an approval {stage.needs === 'Before' ? 'to begin' : 'to pass'}</p>}
      {approve && <p class="actions"><button type="button" onClick={approve}>Approve {stage.name}</button></p>}
    </li>
  );
}

// Shape repeats what color says.
function glyph(state: string): string {
  return { Failed: '×', Blocked: '!', NotRolledBack: '!', Good: '✓', Skipped: '–', RolledBack: '↩' }[state] ?? (flying.includes(state) ? '•' : '');
}

function words(m: Member): string {
  return [m.state, m.reason, m.check].filter(Boolean).join(' ');
}

function Members({ run, now, meanings, ask }: { run: Rollout['run'] & object; now: number; meanings: Record<string, string>; ask?: (verb: string, cluster: string) => void }) {
  const [shown, setShown] = useState(listed);
  const rows = run.stages.flatMap((s) => s.members.map((m) => ({ ...m, stage: s.name })))
    .filter((m) => !['Good', 'Skipped', 'RolledBack'].includes(m.state))
    .sort((a, b) => Number(a.reason === 'Stage') - Number(b.reason === 'Stage') || urgency.indexOf(a.state) - urgency.indexOf(b.state));
  if (rows.length === 0) return null;
  const heads = ['Cluster', 'Stage', 'State', 'Reason', 'Since', 'Until', 'Meaning'];
  return (
    <section aria-label="Members that are not done">
      <h2>Members that are not done</h2>
      <table class="stack members">
        <caption>{count(rows.length, 'member')}</caption>
        <thead><tr>{heads.map((h) => <th scope="col" key={h}>{h}</th>)}{ask && <th scope="col">Actions</th>}</tr></thead>
        <tbody>{rows.slice(0, shown).map((m) => (
          <tr key={m.cluster}>
            <td data-head="Cluster"><a href={`#/clusters/${encodeURIComponent(m.cluster)}`}>{m.cluster}</a></td>
            <td data-head="Stage">{m.stage}</td><td data-head="State">{m.state}</td><td data-head="Reason">{[m.reason, m.check].filter(Boolean).join(' ')}</td>
            <td data-head="Since">{ago(m.since, now)}</td><td data-head="Until">{m.until ? ago(m.until, now) : ''}</td>
            <td data-head="Meaning">{meanings[`${m.state} ${m.reason ?? ''}`.trim()]}</td>
            {ask && <td data-head="Actions" class="actions">
              {['Failed', 'Blocked'].includes(m.state) && <button type="button" aria-label={`Retry ${m.cluster}`} onClick={() => ask('Retry', m.cluster)}>Retry</button>}
              {['Failed', 'Blocked', 'Waiting'].includes(m.state) && <button type="button" aria-label={`Skip ${m.cluster}`} onClick={() => ask('Skip', m.cluster)}>Skip</button>}
            </td>}
          </tr>
        ))}</tbody>
      </table>
      {rows.length > shown && <button type="button" onClick={() => setShown(shown + listed)}>Show {Math.min(listed, rows.length - shown)} more</button>}
    </section>
  );
}

function Answers({ answers }: { answers: NonNullable<Rollout['answers']> }) {
  const names = Object.keys(answers);
  if (names.length === 0) return null;
  return (
    <section aria-label="Decisions">
      <h2>Decisions</h2>
      <table class="stack">
        <thead><tr>{['Decision', 'Result', 'Answer'].map((h) => <th scope="col" key={h}>{h}</th>)}</tr></thead>
        <tbody>{names.map((n) => <tr key={n}><td data-head="Decision">{n}</td><td data-head="Result">{answers[n].applied ? 'applied' : 'refused'}</td>
          <td data-head="Answer">{answers[n].message}</td></tr>)}</tbody>
      </table>
    </section>
  );
}

// Confirm asks before a decision, uploads it and shows its answer.
function Confirm({ rollout, wish, close }: { rollout: string; wish: Wish; close: (made: boolean) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState('');
  const [state, setState] = useState<'asks' | 'waits' | 'ends'>('asks');
  const [answer, setAnswer] = useState('');
  const [refused, setRefused] = useState(false);
  useEffect(() => { dialog.current?.showModal(); }, []);
  const send = async () => {
    setState('waits');
    try {
      const { verb, plan, stage, clusters } = wish;
      const result = await decide({ rollout, verb, plan, stage, clusters, reason: reason.trim() || undefined });
      setRefused(!result.applied);
      setAnswer(`${result.applied ? 'Applied' : 'Refused'}: ${result.message}`);
    } catch (e) {
      setRefused(true);
      setAnswer(e instanceof Failure ? e.message : String(e));
    }
    setState('ends');
  };
  return (
    <dialog ref={dialog} aria-labelledby="wish" onClose={() => close(state === 'ends')}>
      <h2 id="wish">{[wish.verb, wish.stage, ...(wish.clusters ?? [])].filter(Boolean).join(' ')}</h2>
      <p>{wish.explains}</p>
      {wish.plan && <p>It applies to the plan <code>{wish.plan}</code> only.</p>}
      {state === 'asks' && <label>Reason <input aria-label="Reason" value={reason} maxLength={200} onInput={(e) => setReason(e.currentTarget.value)} /></label>}
      {state === 'waits' && <p role="status">Waiting for the answer…</p>}
      {state === 'ends' && <p role="alert" class={refused ? 'error' : undefined}>{answer}</p>}
      <p class="actions">
        {state === 'asks' && <button type="button" onClick={send}>{wish.verb}</button>}
        <button type="button" disabled={state === 'waits'} onClick={() => dialog.current?.close()}>{state === 'ends' ? 'Close' : 'Cancel'}</button>
      </p>
    </dialog>
  );
}

export function count(n: number, noun: string): string {
  return n === 1 ? `1 ${noun}` : `${n} ${noun}s`;
}

// RolloutsOf shows what the active runs mean for one cluster.
export function RolloutsOf({ cluster, page }: { cluster: string; page: Page }) {
  const [found, setFound] = useState<{ rollout: string; stage: string; member: Member }[]>([]);
  const [meanings, setMeanings] = useState<Record<string, string>>({});
  useEffect(() => {
    let live = true;
    const load = async () => {
      const list = await read<{ rollouts: RolloutRow[] }>('status/rollouts.json');
      const all: { rollout: string; stage: string; member: Member }[] = [];
      for (const row of list.rollouts.filter((r) => r.run)) {
        const document: Rollout = await read(`status/rollouts/${encodeURIComponent(row.name)}.json`);
        for (const stage of document.run?.stages ?? []) {
          const member = stage.members.find((m) => m.cluster === cluster);
          if (member) all.push({ rollout: row.name, stage: stage.name, member });
        }
      }
      const words: Record<string, string> = await read('meanings.json');
      if (live) { setFound(all); setMeanings(words); }
    };
    load().catch(() => undefined); // the status of the cluster is shown without it
    return () => { live = false; };
  }, [cluster, page.publishedAt]);
  if (found.length === 0) return null;
  return (
    <section aria-label="Rollouts">
      <h2>Rollouts</h2>
      <ul>{found.map((f) => (
        <li key={f.rollout}>
          <a href={`#/rollouts/${encodeURIComponent(f.rollout)}`}>{f.rollout}</a>, stage {f.stage}: <strong>{words(f.member)}</strong>, {ago(f.member.since, Date.now())}
          {f.member.until && `, until ${ago(f.member.until, Date.now())}`}. {meanings[`${f.member.state} ${f.member.reason ?? ''}`.trim()]}
        </li>
      ))}</ul>
    </section>
  );
}
