// Starts the plan of a made-up rollout: node start.mjs URL DIGEST.
import assert from 'node:assert/strict';
import { open } from './browser.mjs';

const [url, digest] = process.argv.slice(2);
const browser = await open();
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(20_000);
  await page.goto(url);
  await page.getByRole('link', { name: 'Rollouts' }).click();
  await page.getByRole('link', { name: 'kubernetes-1.37' }).click();
  await page.getByRole('heading', { name: 'Newest plan' }).waitFor();
  await page.getByText(digest).waitFor();
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(digest).waitFor();
  await dialog.getByRole('button', { name: 'Start', exact: true }).click();
  await dialog.getByText('Applied: run 1 has started').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('heading', { name: 'Stages of run 1' }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Start', exact: true }).count(), 0);
  console.log('every check passed');
} finally {
  await browser.close();
}
