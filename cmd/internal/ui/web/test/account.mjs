// Checks the page of an account with the cluster demo: node account.mjs URL live|published.
import assert from 'node:assert/strict';
import { open } from './browser.mjs';

const [url, mode] = process.argv.slice(2);
const browser = await open();
try {
  const page = await browser.newPage();
  const asked = [], writes = [];
  page.on('request', (r) => {
    asked.push(r.url());
    if (r.method() !== 'GET') writes.push(`${r.method()} ${r.url()}`);
  });
  await page.goto(url);
  await page.getByLabel('View', { exact: true }).selectOption('table');
  await page.getByRole('link', { name: 'demo' }).click();
  await page.getByRole('heading', { name: 'demo' }).waitFor();
  await page.getByText('UpToDate').first().waitFor();
  await page.getByText('pool-workers').first().waitFor();
  if (mode === 'published') {
    await page.getByText('A published copy does not show pools and nodes').waitFor();
    assert.ok(!asked.some((u) => u.includes('/nodes/')));
  } else {
    await page.getByRole('heading', { name: 'Pools and nodes by version' }).waitFor();
    await page.getByRole('cell', { name: 'workers', exact: true }).first().waitFor();
  }
  assert.deepEqual(writes, [], 'the page only reads');
  assert.equal(await page.locator('button').count(), 0);
  console.log('every check passed');
} finally {
  await browser.close();
}
