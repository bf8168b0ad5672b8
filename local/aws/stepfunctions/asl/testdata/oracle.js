// Evaluates the cases of jsonata.json with npm's jsonata and prints what each must be, one JSON line a case:
// {"result": …}, {"undefined": true} or {"error": true}. Usage: node oracle.js <node_modules/jsonata> <jsonata.json>
const [, , library, file] = process.argv
const jsonata = require(require('path').resolve(library))
const { worlds, cases } = JSON.parse(require('fs').readFileSync(file))
;(async () => {
  for (const c of cases) {
    // A fresh copy: JSONata marks the arrays it reads.
    const { states, variables } = JSON.parse(JSON.stringify(worlds[c.world]))
    let line
    try {
      const v = await jsonata(c.expression).evaluate(undefined, { states, ...variables })
      // Functions and infinite numbers have no JSON: Step Functions refuses them.
      const text = JSON.stringify(v, (_, x) => { if (typeof x === 'number' && !isFinite(x) || x?._jsonata_lambda) throw x; return x })
      line = v === undefined ? { undefined: true } : { result: JSON.parse(text) }
    } catch (e) {
      line = { error: true }
    }
    console.log(JSON.stringify(line))
  }
})()
