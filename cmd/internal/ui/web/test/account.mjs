// Checks the page of an account with the cluster demo: node account.mjs URL live|published.
import assert from 'node:assert/strict';
import { open } from './browser.mjs';

const [url, mode] = process.argv.slice(2);
const browser = await open();
try {
  const page = await browser.newPage();
  const writes = [];
  page.on('request', (r) => {
    if (r.method() !== 'GET') writes.push(`${r.method()} ${r.url()}`);
  });
  await page.goto(url);
  await page.getByLabel('View', { exact: true }).selectOption('table');
  await page.getByRole('link', { name: 'demo' }).click();
  await page.getByRole('heading', { name: 'demo' }).waitFor();
  await page.getByText('UpToDate').first().waitFor();
  await page.getByText('pool-workers').first().waitFor();
  await page.getByRole('heading', { name: 'Pools and nodes by version' }).waitFor();
  await page.getByRole('cell', { name: 'workers', exact: true }).first().waitFor();
  await page.getByRole('link', { name: 'All clusters' }).click();
  await page.getByRole('link', { name: 'Rollouts' }).click();
  await page.getByText('There is no rollout').waitFor();
  assert.deepEqual(writes, [], `the ${mode} page only reads`);
  assert.equal(await page.locator('button').count(), 0);
  console.log('every check passed');
} finally {
  await browser.close();
}
