// Checks the page over 10,000 made-up clusters: node page.mjs URL [FOLDER for screenshots]. It prints its measurements as JSON.
import assert from 'node:assert/strict';
import { open } from './browser.mjs';

const [url, shots] = process.argv.slice(2);
const browser = await open();
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const problems = [], foreign = [];
  page.on('pageerror', (e) => problems.push(String(e)));
  page.on('console', (m) => m.type() === 'error' && problems.push(m.text()));
  page.on('request', (r) => new URL(r.url()).origin !== new URL(url).origin && foreign.push(r.url()));
  const began = performance.now();
  await page.goto(url);
  await page.getByText('Healthy 9').first().waitFor();
  const firstView = performance.now() - began;
  assert.equal(await page.evaluate(() => location.hash), '', 'the token left the address');

  // Panning: the longest pause between two frames.
  const worst = await page.evaluate(async () => {
    const box = document.querySelector('.scroller');
    const end = box.scrollHeight - box.clientHeight;
    let last = 0, worst = 0;
    await new Promise((done) => {
      let n = 0;
      const frame = (at) => {
        if (last) worst = Math.max(worst, at - last);
        last = at;
        box.scrollTop = (end * n++) / 120;
        if (n > 120) done(); else requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    box.scrollTop = 0;
    return worst;
  });
  if (shots) await page.screenshot({ path: `${shots}/fleet.png` });

  // Filters and groups.
  await page.getByLabel('Filter', { exact: true }).fill('env in (prod),team!=t1');
  await page.getByLabel('Group by', { exact: true }).selectOption({ label: 'label env' });
  await page.getByLabel('Health', { exact: true }).selectOption('Failing');
  await page.getByLabel('View', { exact: true }).selectOption('table');
  const listed = await page.locator('tbody tr').count();
  assert.ok(listed > 10 && listed < 60, `${listed} failing clusters of prod`);
  assert.match(await page.locator('tbody tr').first().innerText(), /Failing/);
  await page.getByLabel('Health', { exact: true }).selectOption('');
  await page.getByLabel('Filter', { exact: true }).fill('');
  await page.getByLabel('View', { exact: true }).selectOption('grid');
  await page.getByLabel('Group by', { exact: true }).selectOption('');

  // The keyboard alone: into the grid, to the second cluster, and open it.
  await page.getByLabel('View', { exact: true }).focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowRight');
  assert.match(await page.locator('#active').innerText(), /^c00001: Changing, Blocked/);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'c00001' }).waitFor();
  await page.getByText('shop/cart-1').waitFor();
  await page.getByText('v1.37.0').waitFor();
  const text = await page.locator('main').innerText();
  for (const want of ['shop/cart-1', 'shop/cart', '10m left', 'spec.pools[0].image', 'ami-1', 'ami-2', 'control plane 1.37', 'Converging']) {
    assert.match(text, new RegExp(want.replace(/[[\].]/g, '\\$&')));
  }
  assert.equal(await page.evaluate(() => document.activeElement.id), 'cluster-name', 'the focus follows');
  if (shots) await page.screenshot({ path: `${shots}/cluster.png` });

  // 360 px, dark: nothing leaves the page sideways, and it is dark.
  await page.setViewportSize({ width: 360, height: 740 });
  await page.emulateMedia({ colorScheme: 'dark' });
  for (const hash of ['#/clusters/c00001', '#/']) {
    await page.evaluate((h) => { location.hash = h; }, hash);
    await page.getByRole('heading', { name: hash === '#/' ? 'Fleet' : 'c00001' }).waitFor();
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${hash} is ${over} px too wide`);
  }
  const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(background, 'rgb(18, 22, 27)');
  if (shots) await page.screenshot({ path: `${shots}/narrow.png` });

  // Every control has an accessible name.
  const unnamed = await page.evaluate(() => [...document.querySelectorAll('input, select, button, [tabindex="0"]')]
    .filter((e) => !(e.ariaLabel || e.tagName === 'BUTTON' && e.textContent.trim())).map((e) => e.outerHTML));
  assert.deepEqual(unnamed, []);
  assert.equal(await page.locator('button[type=submit]').count(), 0);
  assert.deepEqual(foreign, [], 'the page speaks to its server only');
  assert.deepEqual(problems, []);

  // Another tab without the token sees nothing.
  const other = await (await browser.newContext()).newPage();
  await other.goto(url.replace(/#.*/, ''));
  await other.getByText('the token is missing').waitFor();
  console.log(JSON.stringify({ firstViewMilliseconds: Math.round(firstView), longestFrameMilliseconds: Math.round(worst) }));
  console.log('every check passed');
} finally {
  await browser.close();
}
