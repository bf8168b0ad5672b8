// Validates rendered templates against CloudFormation's resource schemas and rules:
//
//   node templates/validate.mjs FILE|DIRECTORY...
//
// Everything from WARN upwards fails the run. The package is that of infra/package.json.
import { createRequire } from 'node:module';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const require = createRequire(new URL('../infra/package.json', import.meta.url));
const { RegoEngine, TemplateFile } = require('@aws/cloudformation-validate');

const config = {
  severityLevel: 'WARN',
  exclude: {
    ids: [
      'W9002', // a template is rendered for one account, partition and region, and names other stacks' roles by ARN
      'W9013', // likewise
      'W3010', // the zones are those of the spec
    ],
  },
};
const pace = ['MinInstancesInService', 'MaxBatchSize', 'MinHealthyPercentage', 'MaxHealthyPercentage'];
const excused = (d) =>
  // The rule knows the VPC's first range only, and pods live in the others.
  (d.ruleId === 'E3059' && /^PodSubnet/.test(d.entity?.logicalId ?? '')) ||
  // The rule does not look into UpdatePolicy, where CloudFormation resolves references too.
  (d.ruleId === 'W2001' && pace.includes(d.entity?.logicalId));

const files = (path) => statSync(path).isDirectory()
  ? readdirSync(path).sort().flatMap((name) => files(join(path, name)))
  : path.endsWith('.yaml') ? [path] : [];

const paths = process.argv.slice(2).flatMap(files);
if (paths.length === 0) {
  console.error('usage: node templates/validate.mjs FILE|DIRECTORY...');
  process.exit(2);
}
// Two thirds of the templates are equal to another cluster's. Each text is validated once, and reported with its first file.
const texts = new Map();
for (const path of paths) {
  const text = readFileSync(path, 'utf8');
  if (!texts.has(text)) texts.set(text, path);
}
const engine = new RegoEngine();
let findings = 0;
for (const path of texts.values()) {
  const report = engine.validateStandard(new TemplateFile(path), config);
  if (report.status !== 'OK') {
    findings++;
    console.error(`${path}: ${report.status}`);
  }
  for (const d of report.diagnostics.filter((d) => !excused(d))) {
    findings++;
    console.error(`${path}: ${d.severity} ${d.ruleId} ${d.entity?.logicalId ?? ''} ${d.propertyPath ?? ''}: ${d.message}`);
  }
}
engine.free();
console.log(`${paths.length} templates, ${findings} findings`);
process.exit(findings === 0 ? 0 : 1);
