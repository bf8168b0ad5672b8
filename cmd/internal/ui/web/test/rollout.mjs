// Checks the page of a made-up rollout: node rollout.mjs URL DIGEST [FOLDER for screenshots] [published].
import assert from 'node:assert/strict';
import { open } from './browser.mjs';

const [url, digest, shots, mode] = process.argv.slice(2);
const browser = await open();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const problems = [], writes = [];
  page.on('pageerror', (e) => problems.push(String(e)));
  page.on('console', (m) => m.type() === 'error' && problems.push(m.text()));
  page.on('request', (r) => r.method() !== 'GET' && writes.push(new URL(r.url()).pathname));
  await page.goto(url);

  // Why a cluster waits: two clicks from the fleet.
  await page.getByRole('link', { name: 'Rollouts' }).click();
  await page.getByRole('cell', { name: 'Running' }).waitFor();
  await page.getByRole('link', { name: 'kubernetes-1.37' }).click();
  await page.getByRole('heading', { name: 'kubernetes-1.37' }).waitFor();
  const row = page.getByRole('row').filter({ hasText: 'c00006' });
  await row.getByText('The window of the cluster').waitFor();
  assert.match(await row.innerText(), /ClusterWindow/);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'rollout-name', 'the focus follows');

  // Stages from left to right, with members as squares, the budget, the soak and the gate.
  const stages = page.getByRole('listitem').filter({ has: page.locator('.squares') });
  assert.equal(await stages.count(), 3);
  const lefts = await stages.evaluateAll((all) => all.map((e) => e.getBoundingClientRect().left));
  assert.ok(lefts[0] < lefts[1] && lefts[1] < lefts[2], `${lefts}`);
  assert.equal(await stages.nth(1).locator('.square').count(), 40);
  assert.match(await stages.nth(1).innerText(), /1 of 3 failed/);
  assert.match(await stages.nth(1).innerText(), /2 of 5 at risk/);
  assert.match(await stages.nth(0).innerText(), /Passed/);
  assert.match(await stages.nth(0).innerText(), /soak restarted for 1 member/);
  assert.match(await page.locator('.why').innerText(), /prod\/eu-west-1\/1: 2 at risk, 37 wait for ClusterWindow/);
  assert.match(await page.locator('main').innerText(), new RegExp(digest));

  // The plan.
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.getByRole('cell', { name: 'approval before' }).waitFor();
  await page.getByText('c09999 (Pinned)').waitFor();
  await page.getByRole('button', { name: 'Hide the plan' }).click();
  if (shots) await page.screenshot({ path: `${shots}/rollout.png` });

  if (mode === 'published') {
    for (const verb of ['Pause', 'Abort', 'Retry c00003', 'Skip c00006']) {
      assert.equal(await page.getByRole('button', { name: verb, exact: true }).count(), 0, verb);
    }
    assert.deepEqual(writes, []);
  } else {
    const decide = async (button, confirm, answer, reason) => {
      await page.getByRole('button', { name: button, exact: true }).click();
      const dialog = page.getByRole('dialog');
      if (reason) await dialog.getByLabel('Reason', { exact: true }).fill(reason);
      await dialog.getByRole('button', { name: confirm, exact: true }).click();
      await dialog.getByText(answer).waitFor();
      await dialog.getByRole('button', { name: 'Close' }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    // Cancel makes no decision.
    await page.getByRole('button', { name: 'Abort', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    assert.deepEqual(writes, []);
    // The keyboard alone: Escape closes.
    await page.getByRole('button', { name: 'Abort', exact: true }).press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await decide('Retry c00003', 'Retry', 'Applied: 1 of 1 members with another attempt', 'quota was raised');
    await decide('Skip c00006', 'Skip', 'Applied: 1 of 1 members skipped');
    await decide('Pause', 'Pause', 'Applied: nothing starts until');
    await page.locator('.why').filter({ hasText: 'paused the run' }).waitFor();
    await decide('Resume', 'Resume', 'Applied: the run continues');
    await decide('Abort', 'Abort', 'Applied: nothing starts');
    assert.deepEqual(writes, Array(5).fill('/decisions'));
  }

  // 360 px, dark: only the stages scrolls sideways.
  await page.setViewportSize({ width: 360, height: 740 });
  await page.emulateMedia({ colorScheme: 'dark' });
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(over <= 0, `the page is ${over} px too wide`);
  const unnamed = await page.evaluate(() => [...document.querySelectorAll('input, select, button, [tabindex="0"]')]
    .filter((e) => !(e.ariaLabel || e.tagName === 'BUTTON' && e.textContent.trim())).map((e) => e.outerHTML));
  assert.deepEqual(unnamed, []);

  // A cluster names its rollout.
  await page.goto(`${url.replace(/#.*/, '')}#/clusters/c00001`);
  await page.getByRole('link', { name: 'kubernetes-1.37' }).waitFor();
  assert.deepEqual(problems.filter((p) => !p.includes('404')), []);
  console.log('every check passed');
} finally {
  await browser.close();
}
