// Bundles the page into ../dist, which the command embeds.
import { build } from 'esbuild';
import { copyFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

// The script may run in any folder.
const here = fileURLToPath(new URL('.', import.meta.url));
await build({
  absWorkingDir: here,
  entryPoints: ['src/app.tsx', 'src/app.css'],
  outdir: '../dist',
  bundle: true,
  minify: true,
  target: 'es2022',
  format: 'esm',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'warning',
});
await copyFile(`${here}src/index.html`, `${here}../dist/index.html`);
